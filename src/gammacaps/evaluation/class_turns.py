"""Images of every class in their turn, whatever order a data set has them in."""

import torch
from torch import Tensor


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
