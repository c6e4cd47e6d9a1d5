"""Attacks on any torch classifier of images in [0, 1], and the table of those that an evaluation can run."""

from gammacaps.attacks.attack import Attack
from gammacaps.attacks.auto import auto_attack
from gammacaps.attacks.gradient import fgsm, frozen, pgd
from gammacaps.attacks.losses import LOSSES
from gammacaps.attacks.noise import grey, noise
from gammacaps.attacks.table import add_attack, attack_named, attack_names, suites
from gammacaps.attacks.vote import vote_surrogate

__all__ = [
    "LOSSES",
    "Attack",
    "add_attack",
    "attack_named",
    "attack_names",
    "auto_attack",
    "fgsm",
    "frozen",
    "grey",
    "noise",
    "pgd",
    "suites",
    "vote_surrogate",
]
