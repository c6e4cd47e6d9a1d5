"""The header of an `.npy` file, read without trusting it.

numpy's own reader evaluates the header as Python, and once more as Python 2's: on damaged ones it warns, and raises
errors of many kinds. This one knows the three entries that a header has and the dtypes that data can have.
"""

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

MAGIC = b"\x93NUMPY"
LENGTHS = {1: "<H", 2: "<I", 3: "<I"}  # of the header's own length, by version
LONGEST = 10_000  # bytes of a header: numpy's own limit
MOST_DIMENSIONS = 8

ENTRY = re.compile(
    r"""\s*(['"])(?P<key>descr|fortran_order|shape)\1\s*:\s*"""
    r"""(?P<value>'[^']*'|"[^"]*"|True|False|\([^()]*\)|\[[^\[\]]*\])\s*(?:,|$)"""
)
SHAPE = re.compile(r"\(\s*(?:\d{1,18}L?\s*,\s*)*(?:\d{1,18}L?\s*)?\)")  # Python 2 wrote an L
DTYPE = re.compile(r"[<>|=]?[biufcSU]\d{1,9}")


@dataclass(frozen=True)
class Header:
    """What an `.npy` file says of its array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    start: int  # where the values begin, in bytes

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(read: Callable[[int], bytes], total: int) -> Header:
    """The header at the start of a stream of `total` bytes; a ValueError says in a few words what is wrong with it."""
    opening = read(8)
    layout = LENGTHS.get(opening[6]) if len(opening) == 8 and opening.startswith(MAGIC) else None
    if layout is None:
        raise ValueError("it does not start as one")
    wide = struct.calcsize(layout)
    length = int.from_bytes(read(wide), "little")
    text = read(min(length, LONGEST)).decode("latin1")
    if len(text) < length:
        raise ValueError("its header is cut short, or too long")
    entries = _entries(text.strip())
    header = Header(
        _shape(entries["shape"]), entries["fortran_order"] == "True", _dtype(entries["descr"]), 8 + wide + length
    )
    present = total - header.start
    if header.bytes != present:
        raise ValueError(
            f"its header promises {header.shape} values of {header.dtype.itemsize} bytes, and {present} bytes follow"
        )
    return header


def _entries(text: str) -> dict[str, str]:
    """The source of each of the three values."""
    entries = {}
    if text.startswith("{") and text.endswith("}"):
        inner, at = text[1:-1].rstrip(), 0
        while at < len(inner) and (entry := ENTRY.match(inner, at)):
            entries[entry["key"]] = entry["value"]
            at = entry.end()
        if at == len(inner) and len(entries) == 3 and entries["fortran_order"] in ("True", "False"):
            return entries
    raise ValueError("its header can't be understood")


def _shape(source: str) -> tuple[int, ...]:
    if not SHAPE.fullmatch(source):
        raise ValueError("its header can't be understood")
    sides = tuple(map(int, re.findall(r"\d+", source)))
    if len(sides) > MOST_DIMENSIONS:
        raise ValueError(f"it has {len(sides)} dimensions")
    return sides


def _dtype(source: str) -> np.dtype:
    name = source[1:-1]
    if source[0] == "[" or "O" in name or "V" in name:
        raise ValueError("it holds Python objects or records")
    try:
        dtype = np.dtype(name) if DTYPE.fullmatch(name) else None
    except (TypeError, ValueError, OverflowError):
        dtype = None
    if dtype is None or dtype.itemsize == 0:
        raise ValueError("its dtype is unknown")
    return dtype
