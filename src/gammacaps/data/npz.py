"""Own data in one `.npz` file."""

import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int64, UInt8

from gammacaps.data.archive import AGAIN, open_arrays
from gammacaps.data.checks import check_class_names, check_images, check_memory
from gammacaps.data.dataset import DataSet
from gammacaps.data.pixels import to_unit
from gammacaps.data.split import held_out
from gammacaps.errors import InputError

SPLIT_KEYS = ("train_images", "train_labels", "test_images", "test_labels")
PLAIN_KEYS = ("images", "labels")
MOST_CLASSES = 2**16  # a larger label is an identity number, not a class number
LONGEST_NAME = 1000

Pixels = UInt8[np.ndarray, "N C H W"] | Float32[np.ndarray, "N C H W"]


def read_npz(path: Path, split: str, size: tuple[int, int] | None, name: str) -> DataSet:
    """One split of a file with `train_images, train_labels, test_images, test_labels`, or `images, labels`.

    Images are bytes or floats in [0, 1], of the shape (N, H, W), (N, C, H, W) or (N, H, W, 1 or 3); labels
    are integers (N,) that count from 0. An optional `class_names` holds a string a class. Without a split,
    every fifth image of each class, in order of index, is for testing.
    """
    with open_arrays(path) as arrays:
        has_split = any(key in arrays for key in SPLIT_KEYS)
        keys = SPLIT_KEYS if has_split else PLAIN_KEYS
        missing = [key for key in keys if key not in arrays]
        if missing:
            raise InputError(
                f"{path} lacks {', '.join(missing)} (it holds {_listed(arrays) or 'nothing'}): "
                f"store the arrays {', '.join(SPLIT_KEYS)}, or {' and '.join(PLAIN_KEYS)}."
            )
        known = (*keys, "class_names") if "class_names" in arrays else keys
        looks = {key: arrays.look(key) for key in known}
        for key in keys:
            if key.endswith("images"):
                check_pixel_dtype(looks[key], f"{key} of {path}")
        pixels = check_layout(looks, size, path, of="{} of {}")
        image_key = f"{split}_images" if has_split else "images"
        count, channels, *sides = pixels[image_key].shape
        floats = 4 * count * channels * math.prod(size or sides)
        numbers = sum(8 * len(looks[key]) for key in keys if key.endswith("labels"))
        check_memory(looks[image_key].nbytes + floats + numbers, str(path))
        labels = {key: label_numbers(arrays.read(key), f"{key} of {path}") for key in keys if key.endswith("labels")}
        class_names = names_of(arrays.read("class_names") if "class_names" in arrays else None, labels, path)
        chosen = _pixels(arrays.read(image_key), f"{image_key} of {path}")

    if has_split:
        target = labels[f"{split}_labels"]
    else:
        testing = held_out(labels["labels"], class_names, str(path))
        keep = testing if split == "test" else ~testing
        chosen, target = chosen[keep], labels["labels"][keep]
    return DataSet(to_unit(chosen, size), torch.from_numpy(target), class_names, name, str(path))


def _listed(names: Iterable[str]) -> str:
    """The first ten names, those that could disturb a terminal written out."""
    first = list(itertools.islice(names, 11))
    return ", ".join(name if name.isprintable() else ascii(name) for name in first[:10]) + ", ..." * (len(first) > 10)


def check_pixel_dtype(array: np.ndarray, where: str) -> None:
    if array.dtype != np.uint8 and array.dtype.kind != "f":
        raise InputError(f"{where} have the dtype {array.dtype}: store bytes (uint8, 0 to 255) or floats in [0, 1].")


def check_layout(
    arrays: Mapping[str, np.ndarray], size: tuple[int, int] | None, path: Path, of: str
) -> dict[str, np.ndarray]:
    """Checks all that shapes and dtypes tell, and no value; gives the images as (N, C, H, W).

    `of` names an array, from its key and the path.
    """
    pixels = {key: channels_first(each, of.format(key, path)) for key, each in arrays.items() if key.endswith("images")}
    labels = {key: each for key, each in arrays.items() if key.endswith("labels")}
    for key, each in labels.items():
        check_label_kind(each, of.format(key, path))
    for image_key, label_key in zip(pixels, labels, strict=True):
        if len(pixels[image_key]) != len(labels[label_key]):
            raise InputError(
                f"{path} has {len(pixels[image_key])} {image_key} but {len(labels[label_key])} {label_key}: "
                "give each image one label."
            )
    if "train_images" in pixels:
        check_same_shape(pixels["train_images"], pixels["test_images"], size, path)
    if "class_names" in arrays:
        check_name_kind(arrays["class_names"], path)
    return pixels


def _pixels(array: np.ndarray, where: str) -> Pixels:
    """Images as (N, C, H, W), bytes or floats that were checked."""
    array = channels_first(array, where)
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    with np.errstate(all="ignore"):  # what overflows becomes inf, which the check names
        floats = np.ascontiguousarray(array, np.float32)
    check_images(torch.from_numpy(floats), where=where)
    return floats


def channels_first(array: np.ndarray, where: str) -> np.ndarray:
    """The same pixels, not copied, as (N, C, H, W)."""
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and array.shape[3] in (1, 3) and array.shape[1] not in (1, 3):
        array = array.transpose(0, 3, 1, 2)
    # A "channel" count above a side of the image is a height whose channels stand in an unknown place.
    if array.ndim != 4 or (array.shape[1] > min(array.shape[2:]) and array.shape[1] not in (1, 3)):
        raise InputError(
            f"{where} have the shape {array.shape}: store (N, H, W), (N, C, H, W), or (N, H, W, C) with C 1 or 3."
        )
    if array.size == 0:
        raise InputError(f"{where} have no pixels (shape {array.shape}): store at least one image.")
    return array


def check_label_kind(array: np.ndarray, where: str) -> None:
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{where} have the dtype {array.dtype}: store whole numbers, for example labels.astype('int64')."
        )
    if array.ndim != 1:
        raise InputError(
            f"{where} have the shape {array.shape}: store one class number for each image, shape (N,); "
            "one-hot rows become that by labels.argmax(1)."
        )


def label_numbers(array: np.ndarray, where: str) -> Int64[np.ndarray, "N"]:
    """Labels of the right kind as class numbers."""
    wrong = (array < 0) | (array >= MOST_CLASSES)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{where}: label {first} is {array[first]}, which is not a class number: "
            "number the classes 0, 1, 2 and so on."
        )
    return array.astype(np.int64)


def check_name_kind(given: np.ndarray, path: Path) -> None:
    if given.dtype.kind != "U" or given.ndim != 1:
        raise InputError(f"class_names of {path} is not a list of strings: store numpy.array(['cat', 'dog']).")
    longest = given.dtype.itemsize // 4
    if len(given) > MOST_CLASSES or longest > LONGEST_NAME:
        raise InputError(
            f"class_names of {path} has {len(given):,} names of up to {longest:,} characters: "
            f"store at most {MOST_CLASSES:,} names of {LONGEST_NAME:,} characters."
        )


def names_of(given: np.ndarray | None, labels: Mapping[str, Int64[np.ndarray, "_"]], path: Path) -> tuple[str, ...]:
    """The class names, from an array of the right kind or else from the numbers."""
    classes = 1 + max(int(each.max(initial=-1)) for each in labels.values())
    if given is not None:
        if len(given) < classes:
            raise InputError(
                f"class_names of {path} has {len(given)} names, but the labels go up to {classes - 1}: "
                f"name all {classes} classes."
            )
        classes = len(given)
    if classes < 2:
        raise InputError(f"{path} has only one class: a classifier needs at least two, numbered 0 and 1.")
    if given is None:
        return tuple(map(str, range(classes)))
    # numpy's own conversion lets through what is no text, or fails.
    order = {"<": "le", ">": "be"}.get(given.dtype.byteorder, "le" if sys.byteorder == "little" else "be")
    wide, content = given.dtype.itemsize, given.tobytes()
    words = (content[at : at + wide] for at in range(0, len(content), wide))
    try:
        names = tuple(word.decode(f"utf-32-{order}", "surrogatepass").rstrip("\0") for word in words)
    except UnicodeDecodeError:
        raise InputError(f"class_names of {path} is damaged, it holds something that is not text: {AGAIN}.") from None
    check_class_names(names, f"class_names of {path}")
    return names


def check_same_shape(train: np.ndarray, test: np.ndarray, size: tuple[int, int] | None, path: Path) -> None:
    same = train.shape[1] == test.shape[1] and (size is not None or train.shape == (len(train), *test.shape[1:]))
    if not same:
        raise InputError(
            f"{path} has training images of the shape {train.shape[1:]} and test images of {test.shape[1:]} "
            "(channels, height, width): store both alike, or give a size if only that differs."
        )
