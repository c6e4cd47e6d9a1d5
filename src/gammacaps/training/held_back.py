"""Images that are held back from training, to choose by: those that figures are reported of must not."""

import torch
from jaxtyping import Int64
from torch import Tensor

from gammacaps.data import DataSet, StoredSet, open_set
from gammacaps.data.split import rank_in_class
from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig


def split_off(data: DataSet | StoredSet, config: TrainConfig) -> tuple[DataSet | StoredSet, DataSet | StoredSet | None]:
    """The images to train on, and those that `config.validate` holds back; None where it holds none back.

    The same seed and data give the same images: from a run's config.json they are found again.
    """
    if not config.validate:
        return data, None
    if config.validate_on is not None:
        return data, _of_another_set(data, config, config.validate_on)
    held = held_back_places(data.labels, config.validate, config.seed)
    trained = torch.ones(len(data.labels), dtype=torch.bool)
    trained[held] = False
    return at_places(data, trained.nonzero().squeeze(1)), at_places(data, held)


def _of_another_set(data: DataSet | StoredSet, config: TrainConfig, name: str) -> DataSet | StoredSet:
    """As many test images of another set, of the same kind as the images to train on."""
    height, width = data.images.shape[2:]
    other = open_set(name, "test", data_dir=config.data_dir, size=(height, width))
    if other.images.shape[1] != data.images.shape[1] or other.class_names != data.class_names:
        raise InputError(
            f"{name} has other classes or channels than {data.name}: give validate_on a set of the same kind."
        )
    return at_places(other, held_back_places(other.labels, config.validate, config.seed))


def held_back_places(labels: Int64[Tensor, "N"], count: int, seed: int) -> Int64[Tensor, "M"]:
    """`count` places, drawn by the seed, ascending: of each class as many, but never more than half of its images."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed * 1_000_003 + 900_007))
    drawn = labels[order]
    rank = torch.from_numpy(rank_in_class(drawn.numpy()))  # how many of its class were drawn before each image
    may = (rank < drawn.bincount()[drawn] // 2).nonzero().squeeze(1)
    if count > len(may):
        raise InputError(
            f"validate holds back {count:,} of {len(labels):,} images, more than half of a class: give at "
            f"most {len(may):,}."
        )
    chosen = may[rank[may].argsort(stable=True)[:count]]
    return order[chosen].sort().values


def at_places(data: DataSet | StoredSet, places: Tensor) -> DataSet | StoredSet:
    """The images at some places; of a set on disk they stay there."""
    named = (data.class_names, data.name, data.source)
    if isinstance(data, StoredSet):
        return StoredSet(data.images.at(places), data.labels[places], *named)
    return DataSet(data.images[places], data.labels[places], *named)
