"""Builds `fashion-mini`, the sample of fashionMNIST that ships with gammacaps.

    python -m gammacaps.data.sample --source FOLDER

It holds the first 200 training and the first 50 test images of each class in their original order, as an
`.npz` file like any user's own, so that it also is the example of that format.
"""

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np
from jaxtyping import Integer

from gammacaps.data.named_sets import EMBEDDED, FASHION
from gammacaps.data.read_named import read_raw
from gammacaps.data.split import rank_in_class

PER_CLASS = {"train": 200, "test": 50}


def build(source: str | Path | None, out: Path = EMBEDDED) -> None:
    """Write the sample; the same source gives the same bytes."""
    arrays = {"class_names": np.array(FASHION.class_names)}
    for split, count in PER_CLASS.items():
        raw = read_raw(FASHION.name, split, source)
        keep = first_of_each(raw.labels, count)
        arrays[f"{split}_images"], arrays[f"{split}_labels"] = raw.pixels[keep, 0], raw.labels[keep]
    unfinished = out.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for key, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            member = zipfile.ZipInfo(f"{key}.npy")  # dated 1980, unlike a member that is written by name
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    unfinished.replace(out)


def first_of_each(labels: Integer[np.ndarray, "N"], count: int) -> Integer[np.ndarray, "M"]:
    """Indices of the first `count` images of each class, ascending."""
    return np.flatnonzero(rank_in_class(labels) < count)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build fashion-mini from the files of fashionMNIST.")
    parser.add_argument("--source", help="folder with fashionMNIST's files; found or downloaded if left out")
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    arguments = parser.parse_args()
    build(arguments.source, arguments.out)
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
