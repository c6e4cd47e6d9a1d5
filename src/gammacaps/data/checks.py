"""What images, labels and choices must be; all else gets an `InputError` that names the first offence."""

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from gammacaps.errors import InputError

Size = int | Sequence[int] | None
"""An image size as users give it: None (the data's own), one number for a square, or (H, W)."""

# Control characters, line separators and halves of characters, which break tables or can't be written.
UNPRINTABLE = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
LARGEST_SIDE = 4096  # a typing slip such as 280000 should not end as a failed allocation


def check_images(
    images: object, labels: object = None, classes: int | None = None, *, where: str = "The images"
) -> None:
    """Check that images are floats (N, C, H, W) in [0, 1] and labels integers (N,) in [0, classes).

    `where` opens the error's sentence, so that a reader of files can name the file.
    """
    if not isinstance(images, Tensor):
        raise InputError(
            f"{where}: expected a float tensor (N, C, H, W), got a {type(images).__name__}; "
            "convert it, for example by torch.as_tensor(array)."
        )
    if not images.is_floating_point():
        raise InputError(
            f"{where}: expected floats in [0, 1], got {images.dtype}; bytes become that by images.float() / 255."
        )
    if images.ndim != 4:
        raise InputError(
            f"{where}: expected the four dimensions (N, C, H, W), got the shape {tuple(images.shape)}; "
            "one image gets a batch dimension by image[None], a grey one its channel by images[:, None]."
        )
    if images.numel() == 0:
        raise InputError(f"{where}: there are no pixels in the shape {tuple(images.shape)}; give at least one image.")
    low, high = images.detach().aminmax()
    # Written so that NaN, which aminmax passes on, fails too.
    if not (low >= 0 and high <= 1):
        _raise_first_offence(images.detach(), where)
    if labels is not None:
        check_labels(labels, len(images), classes, where=where)


def check_labels(labels: object, count: int, classes: int | None = None, *, where: str = "The images") -> None:
    """Check that labels are `count` integers, none negative, all below `classes` if that is given."""
    if not isinstance(labels, Tensor) or labels.dtype not in WHOLE:
        kind, way = type(labels).__name__, "torch.as_tensor(labels)"
        if isinstance(labels, Tensor):
            kind, way = str(labels.dtype), "labels.long()"
        raise InputError(f"{where}: labels must be a tensor of whole numbers, got {kind}; use {way}.")
    if labels.shape != (count,):
        raise InputError(
            f"{where}: {count} images need labels of the shape ({count},), got {tuple(labels.shape)}; "
            "give each image one class number."
        )
    wrong = labels < 0
    if classes is not None:
        wrong = wrong | (labels >= classes)
    if wrong.any():
        first = int(wrong.nonzero()[0])
        allowed = "from 0 on" if classes is None else f"from 0 to {classes - 1}"
        raise InputError(
            f"{where}: label {first} is {int(labels[first])}, but class numbers go {allowed}; "
            "correct it or leave that image out."
        )


def check_size(size: Size) -> tuple[int, int] | None:
    """A user's size as (H, W), None staying None."""
    if size is None:
        return None
    try:
        sides = (size, size) if isinstance(size, int) else tuple(size)
    except TypeError:  # such as 28.0
        sides = ()
    if len(sides) != 2 or not all(type(side) is int and 1 <= side <= LARGEST_SIDE for side in sides):
        raise InputError(
            f"The size {size!r} is not an image size: give one number or (height, width), "
            f"each from 1 to {LARGEST_SIDE}."
        )
    return sides[0], sides[1]


def check_class_names(names: Iterable[str], where: str) -> None:
    """Check that class names can be printed and written to files."""
    for name in names:
        if UNPRINTABLE.search(name):
            raise InputError(
                f"{where}: the class name {name!a} has characters that can't be printed: rename that class."
            )


def check_memory(needed: int, where: str) -> None:
    """Check that this machine, or the container that it is, has as much memory as that many bytes."""
    present = sys.maxsize
    with contextlib.suppress(AttributeError, OSError, ValueError):  # where the system does not tell
        present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        present = min(present, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    if needed > present:
        raise InputError(
            f"{where} needs {needed / 2**30:,.1f} GiB of memory, but there are {present / 2**30:,.1f}: give fewer or "
            "smaller images, or keep them on disk as .npy files of bytes."
        )


def _raise_first_offence(images: Tensor, where: str) -> None:
    wrong = ~((images >= 0) & (images <= 1))
    index = int(wrong.flatten(1).any(1).nonzero()[0])
    channel, row, column = wrong[index].nonzero()[0].tolist()
    value = images[index, channel, row, column]
    remedy = (
        "scale them, bytes by dividing by 255, normalised images by undoing the normalisation (a model that wants them "
        "is given as gammacaps.Normalized(model, mean, std))"
        if torch.isfinite(value)
        else "fix that image or leave it out"
    )
    raise InputError(
        f"{where}: image {index} is {value.item():g} at channel {channel}, row {row}, column {column}, "
        f"but pixels must be finite and within [0, 1]; {remedy}."
    )


def width_by_height(size: Sequence[int]) -> str:
    """An image's size in words, as in 28 x 32."""
    return f"{size[0]} x {size[1]}"
