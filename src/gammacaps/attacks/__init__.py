"""Attacks on any torch classifier of images in [0, 1]."""

from gammacaps.attacks.gradient import fgsm, frozen, pgd
from gammacaps.attacks.losses import LOSSES

__all__ = ["LOSSES", "fgsm", "frozen", "pgd"]
