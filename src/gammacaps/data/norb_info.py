"""smallNORB's -info files: which toy each pair shows, and from where."""

from pathlib import Path

import numpy as np
from jaxtyping import Int32

from gammacaps.data.formats import parse_norb, read_content
from gammacaps.data.named_files import info_file
from gammacaps.errors import InputError

INSTANCE, ELEVATION, AZIMUTH = 0, 1, 2  # columns of an -info file; the fourth is the lighting
MOST_INSTANCES = 10  # of a class, over both splits: 0 to 9
CODES = {ELEVATION: tuple(range(9)), AZIMUTH: tuple(range(0, 36, 2))}  # 30 to 70 degrees by 5; tens of degrees


def read_info(
    name: str, split: str, data_dir: str | Path | None = None, *, fetch: bool = False
) -> Int32[np.ndarray, "N 4"] | None:
    """Instance, elevation, azimuth and lighting of each pair of a split; None where its -info file is not at hand."""
    path = info_file(name, split, data_dir, fetch=fetch)
    if path is None:
        return None
    info = parse_norb(read_content(path), path)
    if info.dtype != np.int32 or info.ndim != 2 or info.shape[1] != 4 or len(info) == 0:
        raise InputError(
            f"{path} holds {info.dtype} of the shape {info.shape}, not four 32-bit numbers a pair: put smallNORB's own "
            "file there."
        )
    allowed = {INSTANCE: tuple(range(MOST_INSTANCES)), **CODES}
    for column, codes in allowed.items():
        wrong = np.flatnonzero(~np.isin(info[:, column], codes))
        if wrong.size:
            raise InputError(
                f"{path}: pair {wrong[0]} has {info[wrong[0], column]} in column {column + 1}, which smallNORB does "
                "not know; put its own file there."
            )
    return info
