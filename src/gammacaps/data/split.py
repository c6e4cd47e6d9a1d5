"""A test split for data that comes without one: every fifth image of each class."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int64, Integer

from gammacaps.errors import InputError

EVERY = 5


def rank_in_class(labels: Integer[np.ndarray, "N"]) -> Int64[np.ndarray, "N"]:
    """How many images of the same class come before each image."""
    _, counts = np.unique(labels, return_counts=True)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    rank = np.empty(len(labels), np.int64)
    rank[np.argsort(labels, kind="stable")] = np.arange(len(labels)) - first
    return rank


def held_out(labels: Integer[np.ndarray, "N"], class_names: Sequence[str], where: str) -> Bool[np.ndarray, "N"]:
    """True for the images that are for testing: the fifth, tenth, ... of each class."""
    for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
        if count < EVERY:
            raise InputError(
                f"{where} has no split of its own, and class '{class_names[label]}' has {count} images, "
                f"too few to put every {EVERY}th aside for testing: add images, or split the data yourself."
            )
    mask: np.ndarray = rank_in_class(labels) % EVERY == EVERY - 1
    return mask
