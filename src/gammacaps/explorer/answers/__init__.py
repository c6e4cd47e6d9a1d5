"""What the page is told: an image's tree, an attack on it, a capsule and what activates it. Plain values all of it."""

from gammacaps.explorer.answers.attacked import attack
from gammacaps.explorer.answers.breaking import breaking
from gammacaps.explorer.answers.capsules import activated, activated_before, capsule
from gammacaps.explorer.answers.overview import described, samples
from gammacaps.explorer.answers.patches import patches
from gammacaps.explorer.answers.trees import Passed, group_of, parse, passes

__all__ = [
    "Passed",
    "activated",
    "activated_before",
    "attack",
    "breaking",
    "capsule",
    "described",
    "group_of",
    "parse",
    "passes",
    "patches",
    "samples",
]
