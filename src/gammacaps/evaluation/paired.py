"""Differences between networks that were shown the same images, with 95% intervals over these images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gammacaps.errors import InputError
from gammacaps.evaluation.by_image import Right
from gammacaps.evaluation.interval import wilson

Z = 1.959963984540054  # of a normal distribution, 2.5% lie above it


@dataclass(frozen=True)
class Difference:
    """The first networks' share of right images less the second's, with its 95% interval over the images."""

    value: float
    low: float
    high: float
    images: int
    by_seed: tuple[float, ...]  # the same for each pair of seeds, as far as both have one
    paired: bool  # whether it was told image by image; if not, the interval is wider than it need be

    def words(self) -> str:
        """In points of percent, such as +1.2 points (-0.4 to +2.8)."""
        value, low, high = (_signed(100 * x) for x in (self.value, self.low, self.high))
        return f"{value} points ({low} to {high})"

    def spread(self) -> str:
        """The seeds' own differences, where there is more than one."""
        return " and ".join(_signed(100 * x) for x in self.by_seed) if len(self.by_seed) > 1 else ""


def paired_difference(first: Sequence[Right], second: Sequence[Right]) -> Difference:
    """From bits, a `Right` a seed: over the images that all of them have.

    An image counts by the share of the first networks' seeds that had it right, less the share of the second's. The
    interval is the mean of that over images -+ 1.96 standard errors, after one image more is counted for each side
    (Bonett and Price, 2012): so it also holds where the networks never or nearly never differ. It is over images; what
    another training would change is seen in the seeds.
    """
    if not first or not second:
        raise InputError("A difference is between networks of both sides: give at least one of each.")
    common = first[0].places
    for one in (*first[1:], *second):
        common = np.intersect1d(common, one.places, assume_unique=True)
    if len(common) == 0:
        raise InputError("The networks were not shown the same images: measure them on the same.")
    a, b = (
        np.stack([one.right[np.isin(one.places, common)] for one in side]).astype(float) for side in (first, second)
    )
    each = a.mean(axis=0) - b.mean(axis=0)
    low, high = mean_interval(each)
    by_seed = tuple(float((x - y).mean()) for x, y in zip(a, b, strict=False))
    return Difference(float(each.mean()), low, high, len(common), by_seed, paired=True)


def mean_interval(each: np.ndarray) -> tuple[float, float]:
    """The 95% interval of the mean of differences that lie from -1 to 1, one an image."""
    more = np.concatenate([each, [1.0, -1.0]])
    middle, error = float(more.mean()), float(more.std()) / math.sqrt(len(more))
    return max(-1.0, middle - Z * error), min(1.0, middle + Z * error)


def mean_share(seeds: Sequence[Right]) -> tuple[float, float, float]:
    """The share of right images over one network's seeds, with its 95% interval over the images that all have.

    Two images that are right and two that are wrong are counted more (Agresti and Coull, 1998).
    """
    common = seeds[0].places
    for one in seeds[1:]:
        common = np.intersect1d(common, one.places, assume_unique=True)
    each = np.stack([one.right[np.isin(one.places, common)] for one in seeds]).astype(float).mean(axis=0)
    more = np.concatenate([each, [1.0, 1.0, 0.0, 0.0]])
    middle, error = float(more.mean()), float(more.std()) / math.sqrt(len(more))
    return float(each.mean()), max(0.0, middle - Z * error), min(1.0, middle + Z * error)


def unpaired_difference(first: dict[str, Any], second: dict[str, Any], spread: Sequence[float] = ()) -> Difference:
    """From counts alone (Newcombe, 1998), for records without bits.

    The same images are hard for both networks, so that this interval is wider than the paired one would be.
    """
    p, q = first["accuracy"], second["accuracy"]
    (p_low, p_high), (q_low, q_high) = (wilson(row["correct"], row["images"]) for row in (first, second))
    low = p - q - math.hypot(p - p_low, q_high - q)
    high = p - q + math.hypot(p_high - p, q - q_low)
    images = min(first["images"], second["images"])
    return Difference(p - q, low, high, images, tuple(spread) or (p - q,), paired=False)


def _signed(value: float) -> str:
    return f"{value:+.1f}" if round(value, 1) else "0.0"
