"""The paper's three data sets, from their files to one split."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Integer, UInt8

from gammacaps.data.dataset import DataSet
from gammacaps.data.formats import parse_idx, parse_norb, read_content
from gammacaps.data.pixels import to_unit
from gammacaps.data.registry import ENTRIES, File, Found, obtain
from gammacaps.errors import InputError

VIEWS = ("separate", "channels")
NORB_SIZE = (28, 28)  # the paper's network takes images of MNIST's size


@dataclass(frozen=True)
class Raw:
    """A split as stored: bytes, and a label for each; smallNORB's two views stand as two channels."""

    pixels: UInt8[np.ndarray, "N C H W"]
    labels: Integer[np.ndarray, "N"]
    source: str


def read_named(name: str, split: str, data_dir: str | Path | None, size: tuple[int, int] | None, views: str) -> DataSet:
    """One split of MNIST, fashionMNIST or smallNORB.

    smallNORB's stereo pairs come as single images, 2k and 2k + 1 being the views of pair k, or with
    `views="channels"` as images of two channels; its size is 28 x 28 unless told.
    """
    raw = read_raw(name, split, data_dir)
    pixels, labels = raw.pixels, raw.labels.astype(np.int64)
    if name == "smallnorb":
        size = size or NORB_SIZE
        if views == "separate":
            pixels = pixels.reshape(-1, 1, *pixels.shape[2:])  # [2N 1 H W]
            labels = labels.repeat(2)
    return DataSet(to_unit(pixels, size), torch.from_numpy(labels), ENTRIES[name].class_names, name, raw.source)


def read_raw(name: str, split: str, data_dir: str | Path | None) -> Raw:
    """A split's bytes, found or downloaded, checked by hash where the data set has one edition only."""
    found = obtain(name, split, data_dir)
    pixels, labels = _norb(found) if name == "smallnorb" else _idx(found)
    if len(pixels) != len(labels):
        raise InputError(
            f"{found.images} has {len(pixels)} images but {found.labels} has {len(labels)} labels: "
            "fetch both again from one place."
        )
    classes = len(ENTRIES[name].class_names)
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise InputError(
            f"{found.labels}: label {wrong[0]} is {labels[wrong[0]]}, but the classes go from 0 to "
            f"{classes - 1}; fetch it again."
        )
    return Raw(pixels, labels, str(found.images))


def _idx(found: Found) -> tuple[np.ndarray, np.ndarray]:
    pixels = parse_idx(_checked(found.images, found.pair.images), found.images)  # [N H W]
    labels = parse_idx(_checked(found.labels, found.pair.labels), found.labels)  # [N]
    return pixels[:, None], labels


def _norb(found: Found) -> tuple[np.ndarray, np.ndarray]:
    pixels = parse_norb(_checked(found.images, found.pair.images), found.images)  # [N 2 H W]
    labels = parse_norb(_checked(found.labels, found.pair.labels), found.labels)  # [N]
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[1] != 2 or pixels.size == 0:
        raise InputError(
            f"{found.images} holds {pixels.dtype} of the shape {pixels.shape}, not bytes of "
            "(pairs, 2, height, width): put smallNORB's own file there."
        )
    if labels.dtype != np.int32 or labels.ndim != 1:
        raise InputError(
            f"{found.labels} holds {labels.dtype} of the shape {labels.shape}, not a 32-bit label a pair: "
            "put smallNORB's own file there."
        )
    return pixels, labels


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
    for name, entry in ENTRIES.items():
        for pair in (*entry.train, *entry.test):
            if md5 in (pair.images.content, pair.labels.content):
                return f", it is a file of {name}"
    return ""
