"""The numbers of the paper's tables, as data."""

import functools
import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("expected.json")
EPS = (0.1, 0.3, 0.5)  # the radii of its tables
# What a radius of the paper's is in pixels from 0 to 1. Its figures on smallNORB fit images of deviation 1, a usual
# preparation of that set, in which an image's pixels deviate by 0.1: see the page.
UNITS = {"smallnorb": 0.1}


def unit(data: str) -> float:
    """By how much the paper's radii are multiplied on a data set."""
    return UNITS.get(data, 1.0)


def radii(data: str) -> tuple[float, ...]:
    """The paper's radii on a data set, in pixels from 0 to 1."""
    return tuple(round(eps * unit(data), 6) for eps in EPS)


@functools.cache
def expected() -> dict[str, Any]:
    """By table, data set and routing; accuracies in percent."""
    return json.loads(PATH.read_text(encoding="utf-8"))
