"""The pictures of a folder, each read once: what can't be used, what is odd, and which are held back for testing."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gammacaps.data.checks import width_by_height
from gammacaps.data.folders import Listing, Unreadable, decode, is_grey, list_parts, opened
from gammacaps.data.inspection import digest_of
from gammacaps.data.odd_pictures import counted, first_few, odd_notes, oddities
from gammacaps.data.pixels import to_unit
from gammacaps.errors import InputError

LEAST, FEW = 5, 50  # pictures of a class: fewer can't be learned and tested; with fewer all figures are rough
TESTED = 0.2  # share of each class that is held back
ALIKE = 0.05  # by so much a picture's shape may differ before it counts as stretched or cut


@dataclass(frozen=True)
class Picture:
    """A file that can be read."""

    path: Path
    label: int
    part: str  # "train" or "test", or "all" where the folder leaves that open
    size: tuple[int, int]  # width, height
    digest: str
    grey: bool
    odd: frozenset[str]


@dataclass(frozen=True)
class Pictures:
    """The pictures that are used, by split; and what is to be said of all of them."""

    class_names: tuple[str, ...]
    train: tuple[Picture, ...]
    test: tuple[Picture, ...]
    skipped: tuple[str, ...]  # files that can't be read, with the reason
    notes: tuple[str, ...]

    @property
    def all(self) -> tuple[Picture, ...]:
        return (*self.train, *self.test)

    @property
    def grey(self) -> bool:
        return all(each.grey for each in self.all)


def look(folder: Path, seed: int, progress: Callable[[str, int, int], None]) -> Pictures:
    """Reads all pictures of a folder of class folders; refuses what nothing can be learned from."""
    class_names, parts = list_parts(folder)
    found: list[Picture] = []
    skipped: list[str] = []
    total = sum(len(files.paths) for files in parts.values())
    for part, files in parts.items():
        for picture in _read(part, files, skipped):
            found.append(picture)
            progress("Reading pictures", len(found) + len(skipped), total)
    notes = [f"{counted(len(skipped), 'file')} left out (see pictures.txt): {first_few(skipped)}"] if skipped else []
    found, more = _without_torn(found, class_names)
    notes += more
    _refuse_too_few(found, class_names, folder)
    train, test, more = split(found, seed)
    notes += more
    for name, least in (("training", train), ("test", test)):
        for label in sorted(set(range(len(class_names))) - {each.label for each in least}):
            raise InputError(f"{folder} has no {name} picture of class '{class_names[label]}' left: add some.")
    by_label = Counter(each.label for each in train)
    few = [f"{class_names[label]} ({count})" for label, count in sorted(by_label.items()) if count < FEW]
    if few:
        notes.append(f"Few pictures to learn from, so that figures will be rough: {first_few(few)}.")
    if max(by_label.values()) >= 3 * min(by_label.values()):
        often = max(by_label, key=lambda label: by_label[label])
        share = by_label[often] / len(train)
        notes.append(f"The classes are uneven: always saying '{class_names[often]}' is right for {share:.0%}.")
    grey = sum(each.grey for each in found)
    if 0 < grey < len(found):
        notes.append(f"{counted(grey, 'picture')} grey and {len(found) - grey:,} in colour: all become RGB.")
    notes += odd_notes((str(each.path), each.odd) for each in found)
    return Pictures(class_names, tuple(train), tuple(test), tuple(skipped), tuple(notes))


def _read(part: str, files: Listing, skipped: list[str]) -> Iterator[Picture]:
    for path, label in zip(files.paths, files.labels, strict=True):
        try:
            with opened(path) as image:
                mode, size, odd = image.mode, image.size, oddities(image)
            pixels = decode(path, is_grey(path, mode))
            if len(pixels) == 3 and (pixels == pixels[:1]).all():  # grey, stored as colour
                pixels = np.ascontiguousarray(pixels[:1])
            yield Picture(path, label, part, size, digest_of(pixels), len(pixels) == 1, odd)
        except Unreadable as error:
            skipped.append(f"{path} ({_reason(error)})")


def _reason(error: Unreadable) -> str:
    """Of a sentence about a file what is wrong with it."""
    words = str(error)
    return words.partition(" can't be read (")[2].partition("): ")[0] or words.partition(" has ")[2].partition(":")[0]


def _without_torn(found: list[Picture], class_names: tuple[str, ...]) -> tuple[list[Picture], list[str]]:
    """Without pictures that are in more than one class, of which no label can be right."""
    labels: dict[str, set[int]] = {}
    for each in found:
        labels.setdefault(each.digest, set()).add(each.label)
    torn = [each for each in found if len(labels[each.digest]) > 1]
    named = [f"{each.path} ({class_names[each.label]})" for each in torn]
    note = f"{counted(len(torn), 'picture')} left out, being in more than one class: {first_few(named)}."
    return [each for each in found if len(labels[each.digest]) == 1], [note] if torn else []


def _refuse_too_few(found: list[Picture], class_names: tuple[str, ...], folder: Path) -> None:
    counts = Counter(label for label, _ in {(each.label, each.digest) for each in found})
    for label, name in enumerate(class_names):
        if counts[label] < LEAST:
            raise InputError(
                f"{folder} has too few different pictures of class '{name}' that can be used ({counts[label]}) to "
                f"learn from and to test with: add some, {FEW} or more, or move this folder elsewhere."
            )


def split(found: Sequence[Picture], seed: int) -> tuple[list[Picture], list[Picture], list[str]]:
    """Training and test pictures and notes: the folder's own split, or one by the seed.

    No test picture is equal to a training picture or to another test picture: a copy would be no further test.
    """
    if any(each.part != "all" for each in found):
        train = [each for each in found if each.part == "train"]
        known = {each.digest for each in train}
        test = [each for each in found if each.part == "test"]
        same = [str(each.path) for each in test if each.digest in known]
        note = f"{counted(len(same), 'test picture')} left out, being among the training pictures too: "
        test, notes = _without_copies([each for each in test if each.digest not in known])
        return train, test, [*([f"{note}{first_few(same)}."] if same else []), *notes]
    train, test = [], []
    for label in sorted({each.label for each in found}):
        groups: dict[str, list[Picture]] = {}
        for each in found:
            if each.label == label:
                groups.setdefault(each.digest, []).append(each)
        drawn = list(groups.values())
        random.Random(1_000_003 * seed + label).shuffle(drawn)
        wanted = max(1, round(TESTED * len(drawn)))
        test += [each for group in drawn[:wanted] for each in group]
        train += [each for group in drawn[wanted:] for each in group]
    test, notes = _without_copies(test)
    copies = len(found) - len({each.digest for each in found})
    note = f"{counted(copies, 'picture')} equal to another: equal ones are never both in training and in test."
    return train, test, [*([note] if copies else []), *notes]


def _without_copies(test: list[Picture]) -> tuple[list[Picture], list[str]]:
    """Of equal test pictures the first, and a note on the others."""
    firsts: dict[str, Picture] = {}
    for each in test:
        firsts.setdefault(each.digest, each)
    kept = list(firsts.values())
    copies = [str(each.path) for each in test if firsts[each.digest] is not each]
    note = f"{counted(len(copies), 'test picture')} left out, being equal to another test picture: {first_few(copies)}."
    return kept, [note] if copies else []


def target_size(pictures: Pictures, longest: int, asked: int | None) -> tuple[int, int]:
    """Height and width for the network: the most frequent shape, made smaller where it is larger than `longest`."""
    (width, height), _ = Counter(each.size for each in pictures.all).most_common(1)[0]
    most = asked or min(longest, max(width, height))
    scale = most / max(width, height)
    return max(8, round(height * scale)), max(8, round(width * scale))


def changes(pictures: Pictures, size: tuple[int, int], crop: bool) -> Iterator[str]:
    """Notes on what is made of pictures of other sizes."""
    sizes = Counter(each.size for each in pictures.all)
    if len(sizes) > 1:
        yield f"The pictures are of {len(sizes)} sizes: all become {width_by_height(size[::-1])}."
    bent = [each for each in pictures.all if abs(each.size[0] * size[0] / (each.size[1] * size[1]) - 1) > ALIKE]
    if bent:
        named = [f"{each.path} ({width_by_height(each.size)})" for each in bent]
        way = "cut to the middle" if crop else "stretched; --crop cuts them to the middle instead"
        yield f"{counted(len(bent), 'picture')} of another shape, and {way}: {first_few(named)}."
    small = [each for each in pictures.all if each.size[0] < size[1] and each.size[1] < size[0]]
    if small:
        named = [str(each.path) for each in small]
        yield f"{counted(len(small), 'picture')} smaller than that and enlarged: {first_few(named)}."


def images_of(
    pictures: Sequence[Picture], grey: bool, size: tuple[int, int], crop: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each picture as the network takes it (1, C, H, W), with its label."""
    for each in pictures:
        pixels = decode(each.path, grey)  # C H W
        pixels = middle(pixels, size) if crop else pixels
        yield to_unit(np.ascontiguousarray(pixels)[None], size), torch.tensor([each.label])


def middle(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The largest part around the middle (C, h, w) that has the shape of `size`."""
    _, height, width = pixels.shape
    h = min(height, max(1, round(width * size[0] / size[1])))
    w = min(width, max(1, round(height * size[1] / size[0])))
    top, left = (height - h) // 2, (width - w) // 2
    return pixels[:, top : top + h, left : left + w]
