"""Attacks on any torch classifier of images in [0, 1]."""

from gammacaps.attacks.auto import auto_attack
from gammacaps.attacks.gradient import fgsm, frozen, pgd
from gammacaps.attacks.losses import LOSSES
from gammacaps.attacks.noise import grey, noise
from gammacaps.attacks.vote import vote_surrogate

__all__ = ["LOSSES", "auto_attack", "fgsm", "frozen", "grey", "noise", "pgd", "vote_surrogate"]
