"""One split of a data set, as everything after `gammacaps.data` sees it: in memory, or on disk."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float32, Int64, UInt8
from torch import Tensor

from gammacaps.data.checks import check_memory
from gammacaps.data.pixels import to_unit
from gammacaps.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class DataSet:
    """Images in [0, 1] with their labels, what the classes are called, and where it all came from."""

    images: Float32[Tensor, "N C H W"]
    labels: Int64[Tensor, "N"]
    class_names: tuple[str, ...]
    name: str
    source: str
    notes: tuple[str, ...] = ()  # what a user should know of how it was read
    skipped: tuple[str, ...] = ()  # files that were left out, as they can't be read

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class StoredImages:
    """Images on disk. `images[index]` reads some of them, by a slice or a tensor of places, as floats in [0, 1]."""

    pixels: UInt8[Tensor, "_ C H W"]  # mapped from the file, not read into memory
    places: Int64[Tensor, "N"] | None = None  # which of them belong to the split; None is all
    size: tuple[int, int] | None = None  # what they are resized to as they are read
    device: str | torch.device = "cpu"

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.pixels) if self.places is None else len(self.places)

    def __getitem__(self, index: slice | Tensor) -> Float32[Tensor, "M C h w"]:
        chosen = self.pixels[index if self.places is None else self.places[index]]
        return to_unit(chosen.numpy(), self.size).to(self.device)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        channels, *own = self.pixels.shape[1:]
        height, width = self.size or own
        return len(self), channels, height, width

    def at(self, places: Tensor) -> "StoredImages":
        """Those at some places, still on disk."""
        return replace(self, places=places if self.places is None else self.places[places])

    def to(self, device: str | torch.device) -> "StoredImages":
        """The same, which are put on a device when they are read."""
        return replace(self, device=device)


@dataclass(frozen=True, eq=False)
class StoredSet:
    """A `DataSet` whose images stay on disk."""

    images: StoredImages
    labels: Int64[Tensor, "N"]
    class_names: tuple[str, ...]
    name: str
    source: str

    __repr__ = short_repr

    def whole(self) -> DataSet:
        """The same in memory."""
        check_memory(4 * math.prod(self.images.shape), self.source)
        return DataSet(self.images[:], self.labels, self.class_names, self.name, self.source)
