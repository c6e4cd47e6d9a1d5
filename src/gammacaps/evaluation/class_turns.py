"""Images of every class in their turn, whatever order a data set has them in."""

import torch
from torch import Tensor

from gammacaps.data import DataSet, StoredSet, is_mixed

SEED = 0  # of the order in which images are taken from a set that lists alike ones together


def places_in_turns(data: DataSet | StoredSet) -> Tensor:
    """Where images stand in a data set, in the order in which they are taken where not all are: each class in its turn.

    The first so many are a fair sample. MNIST and fashionMNIST are taken from their beginning, as everybody does. Other
    sets may list alike images together, as smallNORB's test images go toy by toy: of those the images of each class are
    drawn, by a fixed seed.
    """
    return in_turns(data.labels) if is_mixed(data.name) else drawn_in_turns(data.labels, SEED)


def in_turns(labels: Tensor) -> Tensor:
    """Where the images stand, the first of each class before the second of any, else in their order."""
    turn = torch.empty_like(labels)  # each image's place among those of its class
    for label in labels.unique():
        members = (labels == label).nonzero().squeeze(1)
        turn[members] = torch.arange(len(members))
    return turn.argsort(stable=True)


def drawn_in_turns(labels: Tensor, seed: int) -> Tensor:
    """The same with the images of each class drawn by a seed: a data set's order may have a period."""
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    return shuffled[in_turns(labels[shuffled])]
