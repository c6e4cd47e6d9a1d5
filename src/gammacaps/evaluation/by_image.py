"""Which images were right, one bit an image and attack: small enough to keep beside the figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.evaluation.measure import Measured, stood_under

CLEAN, WORST = "clean", "worst"
PLACES, RIGHT = "places", "right"  # how the names of packed arrays begin


@dataclass(frozen=True, eq=False)
class Right:
    """Some images of a test set, and which of them were right."""

    places: np.ndarray  # M, where they stand in the test set, rising
    right: np.ndarray  # M, whether each was right


@dataclass
class ByImage:
    """What an evaluation tells image by image: the images' places, and by name which of them were right."""

    places: Tensor | None = None  # M
    right: dict[str, Tensor] = field(default_factory=dict)  # M each, by `bit_name`

    def take(self, places: Tensor, correct: Tensor, outcomes: list[Measured]) -> None:
        """Keeps the clean answers, each attack that has come to all images, and the worst case of each radius."""
        self.places, self.right = places, {bit_name(CLEAN): correct}
        for one in outcomes:
            if one.done.all():
                self.right[bit_name(one.spec.attack, one.spec.eps)] = stood_under(one, outcomes, correct)
        for eps in dict.fromkeys(one.spec.eps for one in outcomes):
            here = [one for one in outcomes if one.spec.eps == eps]
            if all(bool(one.done.all()) for one in here):
                broken = torch.stack([one.broken for one in here]).any(0)
                self.right[bit_name(WORST, eps)] = correct & ~broken

    def packed(self, test_images: int, prefix: str = "") -> dict[str, np.ndarray]:
        """As arrays of bytes, eight images each: the places as a mask of the whole test set, then a row an attack."""
        if self.places is None:
            return {}
        mask = np.zeros(test_images, dtype=bool)
        mask[self.places.numpy()] = True
        if not (np.flatnonzero(mask) == self.places.numpy()).all():
            raise InputError("Bits are kept of images in the order of their test set: sort them.")
        count = len(self.places)
        rows = {f"{RIGHT}:{count}:{prefix}{name}": np.packbits(bits.numpy()) for name, bits in self.right.items()}
        return {f"{PLACES}:{count}": np.packbits(mask), **rows}


def bit_name(attack: str, eps: float | None = None, *, prefix: str = "") -> str:
    """An attack at a radius as it is named among the bits."""
    return f"{prefix}{attack}" if eps is None else f"{prefix}{attack}@{eps:g}"


def unpacked(arrays: Mapping[str, np.ndarray], name: str) -> Right | None:
    """What was kept under a name, of the most images; None where nothing was, as in older records."""
    counts = [int(key.split(":")[1]) for key in arrays if key.startswith(f"{RIGHT}:") and key.split(":", 2)[2] == name]
    if not counts:
        return None
    count = max(counts)
    places = np.flatnonzero(np.unpackbits(arrays[f"{PLACES}:{count}"]))
    return Right(places, np.unpackbits(arrays[f"{RIGHT}:{count}:{name}"], count=count).astype(bool))
