"""Own data as any torch Dataset, named by its import path and read once into tensors."""

import inspect
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gammacaps.data.checks import check_class_names, check_images
from gammacaps.data.dataset import DataSet
from gammacaps.data.pixels import to_unit
from gammacaps.data.split import held_out
from gammacaps.errors import InputError
from gammacaps.imports import import_name

MOST_CLASSES = 2**16


def read_imported(name: str, split: str, size: tuple[int, int] | None) -> DataSet:
    """One split of the map-style Dataset at `package.module:name`.

    That is a Dataset, or a function that gives one: `name(split)` for "train" and "test", or `name()`. Its items are
    pairs of an image (PIL; a tensor (C, H, W); an array (H, W) or (H, W, C); bytes, or floats in [0, 1]) and a class
    number. Without a split, every fifth image of each class is for testing. Class names are its attribute `classes`.
    """
    named = import_name(name)
    has_split = callable(named) and not _is_data(named) and "split" in _parameters(named)
    data = _called(named, {"split": split} if has_split else {}, name) if not _is_data(named) else named
    if not _is_data(data):
        raise InputError(
            f"{name} is a {type(data).__name__}, not a map-style Dataset (one with a length and items by number): "
            "give such a Dataset, or a function that returns one."
        )
    pixels, labels = _read(data, size, name)
    class_names = _class_names(data, labels, name)
    if not has_split:
        testing = held_out(labels, class_names, name)
        keep = np.flatnonzero(testing if split == "test" else ~testing)
        pixels, labels = [pixels[i] for i in keep], labels[keep]
    images = torch.cat(pixels) if size is not None else to_unit(np.stack(pixels), None)
    check_images(images, where=f"The images of {name}")
    return DataSet(images, torch.from_numpy(labels), class_names, name, name)


def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (ValueError, TypeError):  # of some that are built in nobody knows
        return ()


def _is_data(value: Any) -> bool:
    return hasattr(type(value), "__getitem__") and hasattr(type(value), "__len__")


def _called(named: Any, arguments: dict[str, str], name: str) -> Any:
    if not callable(named):
        return named
    try:
        return named(**arguments)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{name} fails when it is called ({error!r}): give a Dataset, or a function of `split` or nothing."
        ) from error


def _read(data: Any, size: tuple[int, int] | None, name: str) -> tuple[list[Any], np.ndarray]:
    """Each image, (C, H, W) as it is or (1, C, h, w) resized, and all labels."""
    if len(data) == 0:
        raise InputError(f"{name} has no items: give at least one image.")
    pixels: list[Any] = []
    labels = np.empty(len(data), np.int64)
    shape: tuple[int, ...] | None = None
    for index in range(len(data)):
        where = f"Item {index} of {name}"
        try:
            item = data[index]
        except (Exception, SystemExit) as error:
            raise InputError(f"{where} can't be read ({error!r}): fix it or leave it out.") from error
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise InputError(f"{where} is a {type(item).__name__}, not a pair: return an image and its class number.")
        image, labels[index] = _pixels(item[0], where), _label(item[1], where)
        seen = image.shape if size is None else image.shape[:1]
        shape = seen if shape is None else shape
        if seen != shape:
            hint = "give all images the same channels" if size is not None else "give a size, or make them alike"
            raise InputError(f"{where} has the shape {seen} (channels first), but item 0 has {shape}: {hint}.")
        pixels.append(image if size is None else to_unit(image[None], size))
    return pixels, labels


def _pixels(image: Any, where: str) -> np.ndarray:
    """An image as bytes or floats (C, H, W)."""
    if isinstance(image, Image.Image):
        array = np.array(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    elif isinstance(image, Tensor):
        array = image.detach().cpu().numpy()
        array = array if array.ndim != 3 else array.transpose(1, 2, 0)
    else:
        array = np.asarray(image)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.size == 0 or (array.dtype != np.uint8 and array.dtype.kind != "f"):
        raise InputError(
            f"{where} holds a {type(image).__name__} of shape {array.shape} and dtype {array.dtype} as its image: "
            "return a PIL image, a tensor (C, H, W) or an array (H, W, C) of bytes or of floats in [0, 1]."
        )
    array = np.ascontiguousarray(array.transpose(2, 0, 1))
    if array.dtype == np.uint8:
        return array
    floats = array.astype(np.float32)
    check_images(torch.from_numpy(floats)[None], where=where)
    return floats


def _label(label: Any, where: str) -> int:
    try:
        number = int(label)
        whole = number == label
    except (TypeError, ValueError):
        number, whole = -1, False
    if not whole or not 0 <= number < MOST_CLASSES:
        raise InputError(f"{where} has the label {label!r}: number the classes 0, 1, 2 and so on.")
    return number


def _class_names(data: Any, labels: np.ndarray, name: str) -> tuple[str, ...]:
    count = int(labels.max()) + 1
    given = getattr(data, "classes", None)
    names = tuple(map(str, given if given is not None else range(count)))
    if len(names) < max(2, count):
        raise InputError(
            f"{name} has {len(names)} class names, but the labels go up to {count - 1}: name all classes, at least two."
        )
    check_class_names(names, name)
    return names
