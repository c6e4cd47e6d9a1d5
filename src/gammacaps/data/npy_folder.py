"""A data set that stays on disk: the arrays of an `.npz` file, each as an `.npy` file of its own in one folder.

Bytes in an `.npy` file can be mapped into memory, so that an image is read when it is asked for and the set may be
larger than memory; a compressed archive can't.
"""

import os
from pathlib import Path

import numpy as np
import torch

from gammacaps.data.dataset import StoredImages, StoredSet
from gammacaps.data.npy import read_header
from gammacaps.data.npz import PLAIN_KEYS, SPLIT_KEYS, check_layout, label_numbers, names_of
from gammacaps.data.split import held_out
from gammacaps.errors import InputError

AGAIN = "write it again with gammacaps data NAME --store FOLDER"


def is_stored(path: Path) -> bool:
    """Whether a path is such a folder."""
    return any((path / f"{key}.npy").is_file() for key in (*SPLIT_KEYS, *PLAIN_KEYS))


def open_stored(folder: Path, split: str, size: tuple[int, int] | None, name: str) -> StoredSet:
    """One split of a folder with `train_images.npy` and so on; the same arrays as in an `.npz` file, images as bytes.

    Without a split, every fifth image of each class, in order of index, is for testing.
    """
    has_split = any((folder / f"{key}.npy").is_file() for key in SPLIT_KEYS)
    keys = SPLIT_KEYS if has_split else PLAIN_KEYS
    known = (*keys, "class_names") if (folder / "class_names.npy").exists() else keys
    arrays = {key: _array(folder / f"{key}.npy") for key in known}
    for key in keys:
        if key.endswith("images") and arrays[key].dtype != np.uint8:
            raise InputError(
                f"{folder / key}.npy holds {arrays[key].dtype}, but images are kept on disk as bytes (uint8): {AGAIN}."
            )
    pixels = check_layout(arrays, size, folder, of="{1}/{0}.npy")
    labels = {key: label_numbers(arrays[key], f"{folder / key}.npy") for key in keys if key.endswith("labels")}
    class_names = names_of(arrays.get("class_names"), labels, folder)
    places = None
    if has_split:
        chosen, target = pixels[f"{split}_images"], labels[f"{split}_labels"]
    else:
        testing = held_out(labels["labels"], class_names, str(folder))
        keep = np.flatnonzero(testing if split == "test" else ~testing)
        chosen, target, places = pixels["images"], labels["labels"][keep], torch.from_numpy(keep)
    resized = None if size == chosen.shape[2:] else size
    images = StoredImages(torch.from_numpy(chosen), places, resized)
    return StoredSet(images, torch.from_numpy(target), class_names, name, str(folder))


def _array(path: Path) -> np.ndarray:
    """A file's array, mapped into memory; nothing is ever written back."""
    try:
        with path.open("rb") as file:
            header = read_header(file.read, os.fstat(file.fileno()).st_size)
        if header.bytes == 0:  # nothing can't be mapped
            return np.empty(header.shape, header.dtype)
        return np.memmap(path, header.dtype, "c", header.start, header.shape, "F" if header.fortran else "C")
    except FileNotFoundError:
        raise InputError(f"{path.parent} lacks the file {path.name}: {AGAIN}.") from None
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"{path} is not a whole .npy file ({error}): {AGAIN}.") from None
