"""Named data sets, from their files to one split."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Integer, UInt8

from gammacaps.data.dataset import DataSet
from gammacaps.data.formats import Content, read_content
from gammacaps.data.named_files import obtain
from gammacaps.data.named_sets import NAMED_SETS, File, NamedSet
from gammacaps.data.norb_info import INSTANCE, read_info
from gammacaps.data.pixels import to_unit
from gammacaps.data.scaled import scaled
from gammacaps.errors import InputError

VIEWS = ("separate", "channels")


@dataclass(frozen=True)
class RawSplit:
    """A split as stored: bytes, and a label for each; smallNORB's two views stand as two channels."""

    pixels: UInt8[np.ndarray, "N C H W"]
    labels: Integer[np.ndarray, "N"]
    source: str


def read_named(name: str, split: str, data_dir: str | Path | None, size: tuple[int, int] | None, views: str) -> DataSet:
    """One split of a data set of the table.

    smallNORB's stereo pairs come as single images, 2k and 2k + 1 being the views of pair k, or with
    `views="channels"` as images of two channels.
    """
    data = NAMED_SETS[name]
    raw = read_raw(name, split, data_dir)
    pixels, labels = raw.pixels, raw.labels.astype(np.int64)
    if data.toys and split == "test":
        chosen = _shown(data, raw, data_dir)
        pixels, labels = pixels[chosen], labels[chosen]
    if data.views and views == "separate":
        labels = labels.repeat(pixels.shape[1])
        pixels = pixels.reshape(-1, 1, *pixels.shape[2:])  # [2N 1 H W]
    images = to_unit(pixels, size or data.size)
    if data.scaled:
        images = scaled(images)
    return DataSet(images, torch.from_numpy(labels), data.class_names, name, raw.source)


def read_raw(name: str, split: str, data_dir: str | Path | None) -> RawSplit:
    """A split's bytes, found or downloaded, checked by hash where the data set has one edition only."""
    data, files = NAMED_SETS[name], obtain(name, split, data_dir)
    contents = [
        Content(_checked(path, file), path)
        for path, file in ((files.images, files.expected.images), (files.labels, files.expected.labels))
    ]
    pixels, labels = data.read(*contents)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.size == 0:
        raise InputError(
            f"{files.images} holds {pixels.dtype} of the shape {pixels.shape}, not bytes of (images, height, width) or "
            f"(images, channels, height, width): put {name}'s own file there."
        )
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise InputError(
            f"{files.labels} holds {labels.dtype} of the shape {labels.shape}, not one class number for each image: "
            f"put {name}'s own file there."
        )
    if len(pixels) != len(labels):
        raise InputError(
            f"{files.images} has {len(pixels)} images but {files.labels} has {len(labels)} labels: "
            "fetch both again from one place."
        )
    classes = len(data.class_names)
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise InputError(
            f"{files.labels}: label {wrong[0]} is {labels[wrong[0]]}, but the classes go from 0 to "
            f"{classes - 1}; fetch it again."
        )
    return RawSplit(pixels, labels, str(files.images))


def _shown(data: NamedSet, raw: RawSplit, data_dir: str | Path | None) -> Bool[np.ndarray, "N"]:
    """Which pairs of the test split show the toys of the set."""
    info = read_info(data.name, "test", data_dir, fetch=True)
    if info is None:
        raise InputError(
            f"{data.name} is a part of smallNORB's test split, and only its -info file tells which: put that beside "
            f"{raw.source}, or take all of it, smallnorb."
        )
    if len(info) != len(raw.labels):
        raise InputError(
            f"{raw.source} has {len(raw.labels)} pairs, but its -info file tells of {len(info)}: put both from one "
            "place there."
        )
    chosen = np.isin(info[:, INSTANCE], data.toys)
    if not chosen.any():
        raise InputError(f"{raw.source} shows none of the toys of {data.name}: put the whole set there.")
    return chosen


def _checked(path: Path, file: File) -> bytearray:
    content = read_content(path)
    if file.content is None:
        return content
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != file.content:
        raise InputError(
            f"{path} has the wrong content (md5 {md5} unpacked, expected {file.content}){_whose(md5)}: "
            "replace it, or remove it to have it fetched."
        )
    return content


def _whose(md5: str) -> str:
    """MNIST and fashionMNIST name their files alike, so the wrong one of the two is the likeliest mistake."""
    for name, data in NAMED_SETS.items():
        for files in (*data.train, *data.test):
            if md5 in (files.images.content, files.labels.content):
                return f", it is a file of {name}"
    return ""
