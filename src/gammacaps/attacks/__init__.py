"""Attacks on any torch classifier of images in [0, 1], and the table of those that an evaluation can run.

>>> import gammacaps
>>> model, (images, labels) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
>>> attacked = gammacaps.attacks.pgd(model, images[:5], labels[:5], eps=0.1, steps=5)
>>> bool(((attacked - images[:5]).abs() <= 0.1).all())
True
"""

from gammacaps.attacks.attack import Attack
from gammacaps.attacks.auto import auto_attack
from gammacaps.attacks.gradient import fgsm, pgd
from gammacaps.attacks.losses import LOSSES
from gammacaps.attacks.noise import grey, noise
from gammacaps.attacks.spatial import Grid, spatial
from gammacaps.attacks.table import add_attack, attack_named, attack_names, suites
from gammacaps.attacks.vote import vote_surrogate
from gammacaps.nn.frozen import frozen
from gammacaps.replay import replayed

__all__ = [
    "LOSSES",
    "Attack",
    "Grid",
    "add_attack",
    "attack_named",
    "attack_names",
    "auto_attack",
    "fgsm",
    "frozen",
    "grey",
    "noise",
    "pgd",
    "replayed",
    "spatial",
    "suites",
    "vote_surrogate",
]
