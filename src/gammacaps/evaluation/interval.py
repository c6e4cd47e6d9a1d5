"""A share of right answers, with its 95% interval, and how figures are written."""

import math
from typing import Any

from torch import Tensor


def share(correct: Tensor) -> dict[str, Any]:
    """How many of how many are right, as a share with its 95% interval; None where there are no images."""
    count, right = len(correct), int(correct.sum())
    if count == 0:
        return {"accuracy": None, "interval": None, "correct": 0, "images": 0}
    return {"accuracy": right / count, "interval": wilson(right, count), "correct": right, "images": count}


def wilson(correct: int, count: int) -> list[float]:
    """The 95% interval of a share (Wilson 1927), which holds at 0 and 100% too."""
    z = 1.959963984540054
    p, n = correct / count, count
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [min(p, max(0.0, middle - half)), max(p, min(1.0, middle + half))]


def with_interval(row: dict[str, Any]) -> str:
    """An accuracy in percent with its interval, as in 95.6 (95.2 to 96.0)."""
    low, high = row["interval"]
    return f"{100 * row['accuracy']:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def two_places(value: float | None) -> str:
    """A score such as T, with two decimal places; a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"
