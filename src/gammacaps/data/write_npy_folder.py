"""Writes the folders that `npy_folder` reads, a batch at a time, so that the set may be larger than memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
import torch
from torch import Tensor

from gammacaps.data.checks import Size, check_class_names, check_images, check_labels, check_size
from gammacaps.data.folders import folder_images
from gammacaps.data.loading import SPLITS, is_imported, load_set, own_path
from gammacaps.data.named_sets import names
from gammacaps.data.npy_folder import is_stored
from gammacaps.errors import InputError
from gammacaps.files import new_folder, writing
from gammacaps.progress import say

Batches: TypeAlias = Iterable[tuple[Tensor, Tensor]]
CHUNK = 1000  # images of a set in memory that are turned into bytes at once


def store_set(
    name: str | Path,
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    size: Size = None,
    skip_unreadable: bool = False,
) -> dict[str, int]:
    """Writes both splits of a data set, as `load_set` knows it, into a new folder; how many images each has.

    A folder of images is read file by file; any other set is read whole first. What is odd about a folder's files is
    said on standard error; with `skip_unreadable` those that can't be read are left out.
    """
    path = None if name in names() or is_imported(name) else own_path(name)
    if path is not None and path.is_dir() and not is_stored(path):
        class_names, splits, survey = folder_images(path, check_size(size), skip_unreadable=skip_unreadable)
        for note in survey.notes:
            say(f"Note: {note}")
        return store_batches(folder, class_names, **splits)
    parts = {split: load_set(name, split, data_dir=data_dir, size=size) for split in SPLITS}
    batches = {
        split: zip(data.images.split(CHUNK), data.labels.split(CHUNK), strict=True) for split, data in parts.items()
    }
    return store_batches(folder, parts["train"].class_names, **batches)


def store_batches(folder: str | Path, class_names: tuple[str, ...], *, train: Batches, test: Batches) -> dict[str, int]:
    """Writes the batches of two splits into a new folder; how many images each has.

    A batch is images (B, C, H, W), tensors or arrays of bytes or of floats in [0, 1], which are rounded to bytes, with
    labels (B,).
    """
    folder = Path(folder)
    if folder.exists():
        raise InputError(f"{folder} exists already: choose another folder, or remove it.")
    check_class_names(class_names, str(folder))
    with new_folder(folder) as temporary:
        counts = {}
        for split, batches in (("train", train), ("test", test)):
            with writing(folder), (temporary / f"{split}_images.npy").open("wb") as file:
                labels = _write(file, batches, len(class_names), f"The {split} images for {folder}")
                np.save(temporary / f"{split}_labels.npy", labels)
            counts[split] = len(labels)
        with writing(folder):
            np.save(temporary / "class_names.npy", np.array(class_names))
    return counts


def _write(file: IO[bytes], batches: Batches, classes: int, where: str) -> np.ndarray:
    """Writes all images behind one header, and gives their labels."""
    labels: list[np.ndarray] = []
    shape: tuple[int, ...] = ()
    for pixels, own in _as_bytes(batches, classes, where):
        if not labels:
            shape = pixels.shape[1:]
            _write_header(file, (0, *shape))
        if pixels.shape[1:] != shape:
            raise InputError(
                f"{where} are of the shapes {shape} and {pixels.shape[1:]} (channels, height, width): give all alike."
            )
        file.write(pixels.tobytes())
        labels.append(own)
    if not labels:
        raise InputError(f"{where} are none: give at least one batch.")
    file.seek(0)
    _write_header(file, (sum(map(len, labels)), *shape))  # as long as the first, which has room for any number
    return np.concatenate(labels)


def _as_bytes(batches: Batches, classes: int, where: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for given, own in batches:
        images, labels = torch.as_tensor(given), torch.as_tensor(own)
        if images.dtype == torch.uint8 and images.dim() == 4:
            check_labels(labels, len(images), classes, where=where)
        else:
            check_images(images, labels, classes, where=where)
            images = (images * 255).round().to(torch.uint8)
        yield images.cpu().contiguous().numpy(), labels.cpu().numpy().astype(np.int64)


def _write_header(file: IO[bytes], shape: tuple[int, ...]) -> None:
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.uint8)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
