"""Own data as a folder of image files, one sub-folder a class."""

import contextlib
import errno
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from gammacaps.data.checks import check_class_names, check_memory, width_by_height
from gammacaps.data.dataset import DataSet
from gammacaps.data.odd_pictures import DEEP_MODES, counted, first_few, odd_notes, oddities
from gammacaps.data.pixels import to_unit
from gammacaps.data.split import held_out, rank_in_class
from gammacaps.errors import InputError

VALIDATION = frozenset({"val", "valid", "validation", "dev", "eval"})  # what others call a part that is held out
GREY_MODES = frozenset({"1", "L", "LA", "La"}) | DEEP_MODES
COLOUR_MODES = frozenset({"P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"})
BOMBS = (Image.DecompressionBombWarning, Image.DecompressionBombError)
LEAVE_OUT = "with --skip-unreadable of gammacaps train and gammacaps data"


class Unreadable(InputError):
    """A file whose own content can't be used, so that it may be left out."""


@dataclass(frozen=True)
class Listing:
    """Image files with their labels, in the order in which they are read."""

    paths: list[Path]
    labels: list[int]


@dataclass(frozen=True)
class Survey:
    """What the files of a folder have in common, and what is to be said of them."""

    grey: bool  # whether all images are
    notes: tuple[str, ...]  # on odd pictures, and on those that are left out
    skipped: tuple[str, ...] = ()  # files that can't be read


def read_folder(
    folder: Path, split: str, size: tuple[int, int] | None, name: str, *, skip_unreadable: bool = False
) -> DataSet:
    """One split of `folder/<class>/<image>` or `folder/{train,test}/<class>/<image>`.

    Without `train` and `test`, every fifth image of each class, in order of name, is for testing. Images are
    grey if all files of both splits are, else RGB, without their alpha channel; all are of one size unless
    `size` is given. With `skip_unreadable` files that can't be read are left out, where they are an error else.
    """
    class_names, listings, survey = _surveyed(folder, size, skip_unreadable)
    chosen = _mixed(listings[split])
    with opened(chosen.paths[0]) as first:
        height, width = size or first.size[::-1]
    each_image = (1 if survey.grey else 3) * height * width * (5 if size is None else 4)  # as floats, first as bytes
    check_memory(len(chosen.paths) * each_image, str(folder))
    pixels = (decode(path, survey.grey) for path in chosen.paths)
    if size is None:
        images = to_unit(np.stack(list(pixels)), None)
    else:
        images = torch.cat([to_unit(each[None], size) for each in pixels])
    labels = torch.tensor(chosen.labels)
    return DataSet(images, labels, class_names, name, str(folder), survey.notes, survey.skipped)


def folder_images(
    folder: Path, size: tuple[int, int] | None, *, skip_unreadable: bool = False
) -> tuple[tuple[str, ...], dict[str, Iterator[tuple[Tensor, Tensor]]], Survey]:
    """The class names, by split the images and labels of `read_folder`, each image read when asked for, and notes."""
    class_names, listings, survey = _surveyed(folder, size, skip_unreadable)

    def read(files: Listing) -> Iterator[tuple[Tensor, Tensor]]:
        for path, label in zip(files.paths, files.labels, strict=True):
            pixels = decode(path, survey.grey)[None]
            images = torch.from_numpy(pixels) if size in (None, pixels.shape[2:]) else to_unit(pixels, size)
            yield images, torch.tensor([label])

    return class_names, {split: read(_mixed(files)) for split, files in listings.items()}, survey


def _surveyed(
    folder: Path, size: tuple[int, int] | None, skip_unreadable: bool
) -> tuple[tuple[str, ...], dict[str, Listing], Survey]:
    """The class names, the files of both splits, without those that can't be read where they are skipped, and notes."""
    class_names, *parts = list_folder(folder)
    skipped: list[str] = []
    if skip_unreadable:
        parts = [_readable(files, skipped) for files in parts]
        for split, files in zip(("train", "test"), parts, strict=True):
            for label in sorted(set(range(len(class_names))) - set(files.labels)):
                raise InputError(
                    f"{folder} has no {split} image of class '{class_names[label]}' that can be read: add some."
                )
    survey = _survey([path for files in parts for path in files.paths], size)
    if skipped:
        left_out = f"{counted(len(skipped), 'file')} left out, since they can't be read: {first_few(skipped)}."
        survey = Survey(survey.grey, (left_out, *survey.notes), tuple(skipped))
    return class_names, dict(zip(("train", "test"), parts, strict=True)), survey


def _readable(files: Listing, skipped: list[str]) -> Listing:
    """The files that can be read; the names of the others are added to `skipped`."""
    keep = np.ones(len(files.paths), bool)
    for place, path in enumerate(files.paths):
        try:
            with opened(path) as image:
                grey = is_grey(path, image.mode)
            decode(path, grey)
        except Unreadable:
            keep[place] = False
            skipped.append(str(path))
    return _where(files, keep)


def list_folder(folder: Path) -> tuple[tuple[str, ...], Listing, Listing]:
    """The class names and the files of the training and the test split."""
    class_names, parts = list_parts(folder)
    if "all" not in parts:
        return class_names, parts["train"], parts["test"]
    files = parts["all"]
    testing = held_out(np.array(files.labels), class_names, str(folder))
    return class_names, _where(files, ~testing), _where(files, testing)


def list_parts(folder: Path) -> tuple[tuple[str, ...], dict[str, Listing]]:
    """The class names and the files, as "train" and "test" where the folder has these, else as "all"."""
    below = {path.name for path in _subfolders(folder)}
    # Both are needed: "train" alone may be the class beside "bus" and "car".
    if {"train", "test"} <= below:
        class_names, train = _list_classes(folder / "train")
        test_names, test = _list_classes(folder / "test")
        if class_names != test_names:
            odd = sorted(set(class_names) ^ set(test_names))
            raise InputError(
                f"{folder} has different classes in train and test: only one of them has {', '.join(odd)}; "
                "give both the same sub-folders."
            )
        return class_names, {"train": train, "test": test}
    if below in ({"train"}, {"test"}):
        raise InputError(
            f"{folder} has a {below.pop()} folder only: add the other of train and test, "
            "or name the folder in which the class folders are."
        )
    other = sorted(below & VALIDATION)
    if other and below <= {"train", "test", *VALIDATION} and {"train", "test"} & below:
        raise InputError(
            f"{folder} has a folder {other[0]}: what is held out to test must be called test, so rename it."
        )
    class_names, files = _list_classes(folder)
    return class_names, {"all": files}


def _list_classes(folder: Path) -> tuple[tuple[str, ...], Listing]:
    class_folders = _subfolders(folder)
    if len(class_folders) < 2:
        present = f"only one class folder, {class_folders[0].name}" if class_folders else "no class folders"
        raise InputError(f"{folder} has {present}: make one sub-folder a class, two at least, with its images in it.")
    endings = image_endings()
    paths: list[Path] = []
    labels: list[int] = []
    for label, class_folder in enumerate(class_folders):
        images = [path for path in visible(class_folder) if path.suffix.lower() in endings]
        if not images:
            raise InputError(f"The class folder {class_folder} has no images in it: add some, or remove the folder.")
        paths += images
        labels += [label] * len(images)
    class_names = tuple(path.name for path in class_folders)
    check_class_names(class_names, ascii(str(folder))[1:-1])
    return class_names, Listing(paths, labels)


def image_endings() -> set[str]:
    """The endings of files that are taken for images, in lower case with their dot."""
    return {ending for ending, kind in Image.registered_extensions().items() if kind in _formats()}


def _subfolders(folder: Path) -> list[Path]:
    return [path for path in visible(folder) if path.is_dir()]


def visible(folder: Path) -> list[Path]:
    """What is in a folder and not hidden, in order of name."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder} can't be read ({error.strerror}): check the path and its permissions.") from error


def _where(files: Listing, keep: np.ndarray) -> Listing:
    index = np.flatnonzero(keep)
    return Listing([files.paths[i] for i in index], [files.labels[i] for i in index])


def _mixed(files: Listing) -> Listing:
    """The first image of each class, then the second of each: so the first n images are a fair sample."""
    labels = np.array(files.labels)
    order = np.lexsort((labels, rank_in_class(labels)))
    return Listing([files.paths[i] for i in order], [files.labels[i] for i in order])


def _survey(paths: list[Path], size: tuple[int, int] | None) -> Survey:
    """What images have in common, from their headers alone; checks that they are of one size if need be."""
    grey = True
    first_size: tuple[int, int] | None = None
    odd: list[tuple[str, frozenset[str]]] = []
    for path in paths:
        with opened(path) as image:
            grey = grey and is_grey(path, image.mode)
            first_size = first_size or image.size
            odd.append((str(path), oddities(image)))
            if size is None and image.size != first_size:
                raise InputError(
                    f"{path} is {width_by_height(image.size)} pixels (width x height), but {paths[0]} is "
                    f"{width_by_height(first_size)}: give a size, to which all are resized."
                )
    return Survey(grey, odd_notes(odd))


def is_grey(path: Path, mode: str) -> bool:
    """Whether Pillow's mode is a grey one; an error where it can't be read as bytes."""
    if mode not in GREY_MODES | COLOUR_MODES:
        raise Unreadable(
            f"{path} has pixels of Pillow's mode {mode}, whose range is not known: save it as 8-bit grey or RGB, or "
            f"leave such files out {LEAVE_OUT}."
        )
    return mode in GREY_MODES


def decode(path: Path, grey: bool) -> UInt8[np.ndarray, "C H W"]:
    """The pixels of an image file, one channel or three."""
    with opened(path) as image, _quiet():
        try:
            if image.mode in DEEP_MODES:  # Pillow's own way would cut off all above 255
                deep = Image.fromarray((np.array(image, dtype=np.float32) / 257).round().astype(np.uint8))
                image.close()
                image = deep
            # A palette's transparency is understood only on the way over RGBA.
            image = image.convert("RGBA") if image.mode in ("P", "PA") else image
            pixels = np.array(image.convert("L" if grey else "RGB"))
        # Damaged files raise almost anything, from SyntaxError to struct.error, by their format.
        except Exception as error:
            raise _broken(path, error) from error
    return pixels[None] if grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def opened(path: Path) -> Image.Image:
    """An image file with its header read."""
    with _quiet():
        try:
            return Image.open(path, formats=_formats())
        except Exception as error:
            raise _broken(path, error) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Pillow's doubts about a file don't reach the user, except that it is far too large, which is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


@functools.cache
def _formats() -> tuple[str, ...]:
    """All that Pillow reads by itself; PostScript is a program, and another program would run it."""
    Image.init()
    return tuple(name for name in Image.OPEN if name != "EPS")


def _broken(path: Path, error: Exception) -> InputError:
    """What to say of a file: that it is broken, or that the machine did not give it, whatever is in it."""
    if isinstance(error, MemoryError):
        return InputError(f"The image {path} can't be read (out of memory): free some memory, or remove the file.")
    # A broken file makes Pillow look before the file's beginning, which is EINVAL; its own errors have no number.
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return InputError(f"The image {path} can't be read ({error.strerror}): check the file and its permissions.")
    cause = "too large, as a decompression bomb would be" if isinstance(error, BOMBS) else "not a readable image"
    return Unreadable(
        f"The image {path} can't be read ({cause}): fix it or remove it, or leave such files out {LEAVE_OUT}."
    )
