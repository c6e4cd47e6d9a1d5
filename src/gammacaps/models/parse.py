"""A Parse: everything that one pass of a capsule network says about a batch of images."""

from dataclasses import dataclass

from torch import Tensor

from gammacaps.short_repr import short_repr


@dataclass(frozen=True)
class Parse:
    """Layers run from the primary capsules (0) to the class capsules (-1); couplings[l] join layers l and l + 1."""

    layers: tuple[str, ...]  # "primary", "hidden 1", ..., "class"
    poses: tuple[Tensor, ...]  # each B I d
    activations: tuple[Tensor, ...]  # each B I, in [0, 1]
    couplings: tuple[Tensor | None, ...]  # each B I J, summing to 1 over J
    parents: tuple[Tensor | None, ...]  # each I: how many parents a capsule can reach; None where it is all J
    scores: Tensor  # B N: the activations of the class capsules

    __repr__ = short_repr
