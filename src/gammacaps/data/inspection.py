"""What `gammacaps data check` finds in data before it is trained on: every image is read once."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gammacaps.data.checks import Size, check_size, width_by_height
from gammacaps.data.folders import GREY_MODES, Listing, decode, image_endings, is_grey, list_folder, opened, visible
from gammacaps.data.loading import SPLITS, find, load_set
from gammacaps.data.npy_folder import is_stored
from gammacaps.data.odd_pictures import counted, first_few, odd_notes, oddities
from gammacaps.errors import InputError

SMALLEST = 5  # the side of the smallest image that the preset "small" takes
UNEVEN = 3  # classes that differ by this factor are worth a note
TURNED = 0x0112  # the EXIF tag of a photo's orientation, 1 where it is stored upright


@dataclass(frozen=True)
class InspectedImage:
    """One image: its file or number, its split and class, and what tells it from others."""

    where: str
    split: str
    label: int
    size: tuple[int, int]  # width, height
    mode: str
    digest: str
    turned: bool = False
    odd: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Inspection:
    """What is in a data set; `problems` must be fixed before training, `notes` are worth knowing."""

    name: str
    class_names: tuple[str, ...]
    images: tuple[InspectedImage, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    def counts(self, split: str) -> list[int]:
        """Images of each class in a split."""
        by_label = Counter(each.label for each in self.images if each.split == split)
        return [by_label[label] for label in range(len(self.class_names))]


def inspect_set(name: str, *, size: Size = None, data_dir: str | None = None) -> Inspection:
    """Reads both splits of a folder, an .npz file, a Dataset or a named set, and says what is wrong with them.

    `size` is what the images will be resized to in training; None is their own size.
    """
    check_size(size)
    place = find(name, data_dir)  # what is nowhere is an error, not a finding
    try:
        if place is not None and place.is_dir() and place == Path(name).expanduser() and not is_stored(place):
            class_names, *listings = list_folder(place)
            problems, images = _read_files(dict(zip(SPLITS, listings, strict=True)))
            notes = _left_out(place)
        else:
            sets = {split: load_set(name, split, data_dir=data_dir) for split in SPLITS}
            class_names, problems, notes = sets["train"].class_names, [], []
            images = [
                InspectedImage(
                    f"{split} image {k}", split, int(label), (image.shape[2], image.shape[1]), mode, digest_of(image)
                )
                for split, data in sets.items()
                for mode in [{1: "grey", 3: "RGB"}.get(data.images.shape[1], f"{data.images.shape[1]} channels")]
                for k, (image, label) in enumerate(zip(data.images.numpy(), data.labels, strict=True))
            ]
    except InputError as error:
        return Inspection(name, (), (), (str(error),), ())
    problems += [*_sizes(images, size), *_copies(images, class_names)]
    notes += [*_balance(images, class_names), *_changes_on_reading(images, size)]
    return Inspection(name, class_names, tuple(images), tuple(problems), tuple(notes))


def _read_files(listings: dict[str, Listing]) -> tuple[list[str], list[InspectedImage]]:
    """A sentence for each file that can't be read, and all others."""
    broken, images = [], []
    for split, files in listings.items():
        for path, label in zip(files.paths, files.labels, strict=True):
            try:
                with opened(path) as image:
                    mode, size, odd = image.mode, image.size, oddities(image)
                pixels = decode(path, is_grey(path, mode))
            except InputError as error:
                broken.append(str(error))
            else:
                known = (size, mode, digest_of(pixels), _turned(path), odd)
                images.append(InspectedImage(str(path), split, label, *known))
    return broken, images


def _turned(path: Path) -> bool:
    """Whether a photo is marked to be turned when it is shown."""
    with opened(path) as image, contextlib.suppress(Exception):  # the mark can be broken where the pixels are not
        return image.format in ("JPEG", "MPO") and image.getexif().get(TURNED, 1) != 1
    return False


def digest_of(pixels: object) -> str:
    """By which equal pictures are known."""
    shape = str(getattr(pixels, "shape", ())).encode()
    return hashlib.blake2b(shape + memoryview(pixels).tobytes(), digest_size=16).hexdigest()  # type: ignore[arg-type]


def _left_out(folder: Path) -> list[str]:
    """A note on files in class folders that are not taken for images, and on those beside the class folders."""
    below = [path for path in visible(folder) if path.is_dir()]
    if {"train", "test"} <= {path.name for path in below}:
        below = [path for part in below if part.name in SPLITS for path in visible(part) if path.is_dir()]
    endings = image_endings()
    odd = [path for each in below for path in visible(each) if path.suffix.lower() not in endings]
    odd += [path for path in visible(folder) if not path.is_dir()]
    if not odd:
        return []
    return [f"{counted(len(odd), 'file')} left out, being no image of a class: {_some(odd)}."]


def _sizes(images: list[InspectedImage], size: Size) -> Iterator[str]:
    """What training would refuse: sizes that differ, images too small for a network."""
    if size is not None:
        if min(check_size(size) or ()) < SMALLEST:
            yield f"--size {size} is less than {SMALLEST}, the least that a capsule network takes: give a larger one."
        return
    sizes = Counter(each.size for each in images).most_common()
    if len(sizes) > 1:
        odd = next(each for each in images if each.size == sizes[-1][0])
        yield (
            f"The images are of {len(sizes)} sizes: most are {width_by_height(sizes[0][0])}, but {odd.where} is "
            f"{width_by_height(odd.size)}; give --size, to which all are resized."
        )
    small = [each for each in images if min(each.size) < SMALLEST]
    if small:
        yield (
            f"{counted(len(small), 'image')} too small for a network, whose smallest takes {SMALLEST} x {SMALLEST}: "
            f"{_some([f'{each.where} ({width_by_height(each.size)})' for each in small])}; leave them out, or give "
            "--size."
        )


def _copies(images: list[InspectedImage], class_names: tuple[str, ...]) -> Iterator[str]:
    """The same pixels in train and test, where the test would measure memory, or in two classes."""
    groups: dict[str, list[InspectedImage]] = {}
    for each in images:
        groups.setdefault(each.digest, []).append(each)
    shared = [group for group in groups.values() if {each.split for each in group} == set(SPLITS)]
    if shared:
        pairs = [" = ".join(next(e.where for e in group if e.split == split) for split in SPLITS) for group in shared]
        yield f"{counted(len(shared), 'image')} both in train and in test: {_some(pairs)}; keep each in one of them."
    torn = [group for group in groups.values() if len({each.label for each in group}) > 1]
    if torn:
        first = [list({each.label: each for each in reversed(group)}.values())[::-1] for group in torn]  # of each class
        pairs = [" = ".join(f"{e.where} ({class_names[e.label]})" for e in group[:3]) for group in first]
        yield f"{counted(len(torn), 'image')} in more than one class: {_some(pairs)}; keep each in one class."


def _balance(images: list[InspectedImage], class_names: tuple[str, ...]) -> Iterator[str]:
    by_label = Counter(each.label for each in images if each.split == "train")
    counts = [by_label[label] for label in range(len(class_names))]
    empty = [name for name, count in zip(class_names, counts, strict=True) if not count]
    if empty:
        yield f"No training image is of {_some(empty)}: the network can't learn what that looks like."
    least, most = min(counts), max(counts)
    if most >= UNEVEN * max(least, 1):
        rare, frequent = class_names[counts.index(least)], class_names[counts.index(most)]
        yield (
            f"The classes are uneven: {frequent} has {most:,} training images, {rare} {least:,}; "
            f"always saying {frequent} is right for {most / max(1, sum(counts)):.0%}."
        )


def _changes_on_reading(images: list[InspectedImage], size: Size) -> Iterator[str]:
    """Notes on how images will be changed as they are read."""
    grey = [each for each in images if each.mode in GREY_MODES]
    if grey and len(grey) < len(images):
        yield f"{counted(len(grey), 'image')} grey among colour images: all become RGB."
    yield from odd_notes((each.where, each.odd) for each in images)
    turned = [each for each in images if each.turned]
    if turned:
        yield (
            f"{counted(len(turned), 'photo')} stored turned, with a mark that says so ({turned[0].where}), "
            "but read as stored: save them upright."
        )
    shape = check_size(size)
    if shape is None:
        return
    small = [each for each in images if each.size[0] < shape[1] or each.size[1] < shape[0]]
    if small:
        yield f"{counted(len(small), 'image')} smaller than --size {size} and will be enlarged: {_some(small)}."
    stretched = [e for e in images if not 0.8 < e.size[0] * shape[0] / (e.size[1] * shape[1]) < 1.25]
    if stretched:
        what = f"{counted(len(stretched), 'image')} of another shape than {width_by_height(shape[::-1])}"
        yield f"{what} and will be stretched: {_some(stretched)}."


def _some(things: list[InspectedImage] | list[Path] | list[str]) -> str:
    """The first five by name, images with their sizes."""
    named = [f"{e.where} ({width_by_height(e.size)})" if isinstance(e, InspectedImage) else str(e) for e in things]
    return first_few(named)
