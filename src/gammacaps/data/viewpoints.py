"""smallNORB by viewpoint: toys to learn from some directions, and to know again from others.

The experiment of Hinton, Sabour and Frosst (2018): training sees a third of the azimuths, or of the elevations, and the
test images show other toys, from the familiar viewpoints and from new ones.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int32, Int64
from torch import Tensor

from gammacaps.data.checks import Size, check_size
from gammacaps.data.dataset import DataSet
from gammacaps.data.named_files import obtain
from gammacaps.data.norb_info import AZIMUTH, ELEVATION, INSTANCE, read_info
from gammacaps.data.read_named import read_named
from gammacaps.errors import InputError, check_choice

NAME = "smallnorb"
# Where the viewpoint is told, and the codes that training sees.
FAMILIAR = {
    "azimuth": (AZIMUTH, (30, 32, 34, 0, 2, 4)),  # 300, 320, 340, 0, 20 and 40 degrees
    "elevation": (ELEVATION, (0, 1, 2)),  # the three lowest: 30, 35 and 40 degrees
}
OFFICIAL = "smallNORB's own training and test toys"
HELD_OUT = "toys of the test split, two of five a class held out"


@dataclass(frozen=True, eq=False)
class ToyImages:
    """Images, and which toy each of them shows: ten times its class and its instance."""

    data: DataSet
    toys: Int64[Tensor, "N"]


@dataclass(frozen=True, eq=False)
class ViewpointSplit:
    """Training images, and test images of other toys from the viewpoints of training and from new ones."""

    train: ToyImages
    familiar: ToyImages
    new: ToyImages
    protocol: str  # where the toys come from


def viewpoint_split(
    by: str = "azimuth", *, data_dir: str | Path | None = None, size: Size = None, seed: int = 0
) -> ViewpointSplit:
    """smallNORB split by "azimuth" or by "elevation".

    Where both splits' -info files are at hand, the toys of training and test are the official ones. Where only the test
    split's is, its five toys a class are divided: two, by the seed, are for the test, the others for training. Two
    seeds that follow each other test different toys.
    """
    check_choice("kind of viewpoint", by, FAMILIAR)
    column, codes = FAMILIAR[by]
    check_size(size)
    images = obtain(NAME, "test", data_dir).images
    infos = {split: read_info(NAME, split, data_dir) for split in ("train", "test")}
    if infos["test"] is None:
        raise InputError(
            "smallNORB's viewpoints are not known here: put the -info file of its test split, or better of both, "
            f"beside the -dat file {images}."
        )
    test, test_info = _toys("test", infos["test"], data_dir, size)
    near = torch.from_numpy(np.isin(test_info[:, column], codes))
    if infos["train"] is not None:
        train, train_info = _toys("train", infos["train"], data_dir, size)
        learned = torch.from_numpy(np.isin(train_info[:, column], codes))
        return ViewpointSplit(_at(train, learned), _at(test, near), _at(test, ~near), OFFICIAL)
    held = torch.from_numpy(np.isin(test_info[:, INSTANCE], held_out(test_info[:, INSTANCE], seed)))
    return ViewpointSplit(_at(test, ~held & near), _at(test, held & near), _at(test, held & ~near), HELD_OUT)


def held_out(instances: Int32[np.ndarray, "N"], seed: int) -> tuple[int, ...]:
    """Two of the instance numbers: the next two for each next seed, round and round."""
    numbers = np.unique(instances)
    if len(numbers) < 3:
        raise InputError(f"smallNORB's -info file knows {len(numbers)} toys a class, too few to hold two out.")
    return tuple(int(numbers[(2 * seed + k) % len(numbers)]) for k in range(2))


def _toys(
    split: str, info: Int32[np.ndarray, "N 4"], data_dir: str | Path | None, size: Size
) -> tuple[ToyImages, Int32[np.ndarray, "M 4"]]:
    """All images of a split, each view by itself, with their toys, and the info of each image."""
    data = read_named(NAME, split, data_dir, check_size(size), "separate")
    if len(data.labels) != 2 * len(info):
        raise InputError(
            f"{data.source} has {len(data.labels) // 2} pairs, but its -info file tells of {len(info)}: put both from "
            "one place there."
        )
    info = info.repeat(2, axis=0)  # the views of pair k are the images 2k and 2k + 1
    return ToyImages(data, 10 * data.labels + torch.from_numpy(info[:, INSTANCE]).long()), info


def _at(images: ToyImages, which: Bool[Tensor, "N"]) -> ToyImages:
    data = images.data
    if not which.any():
        raise InputError(
            f"{data.source} has no images for one part of the split by viewpoint: put the whole set there."
        )
    chosen = DataSet(data.images[which], data.labels[which], data.class_names, data.name, data.source)
    return ToyImages(chosen, images.toys[which])
