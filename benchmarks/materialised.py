"""Gamma-capsule networks the way public capsule code writes it: library convolutions and votes by a broadcast product.

That product lays a copy of the weights beside every image, a tensor (B, J, I, D, d), and autograd keeps each step of
routing. This is what gammacaps is timed against: nothing in it is slow on purpose, and its layouts are chosen freely.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gammacaps.bench.ways import by_library
from gammacaps.models import GammaCapsNet
from gammacaps.ops import length, squash
from gammacaps.ops.routing.rules import scale
from gammacaps.ops.vectors import TINY


def sda(poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int) -> Tensor:
    """Algorithm 1 on poses (B, I, d), weight (J, I, D, d) and bias (J, D): the upper poses (B, J, D)."""
    votes = torch.matmul(weight[None], poses[:, None, :, :, None]).squeeze(-1)  # B J I D
    most, size = length(poses).unsqueeze(1), length(votes)  # B 1 I, B J I
    votes = votes * torch.where(size > most, most / size.clamp_min(TINY), 1).unsqueeze(-1)
    b = votes.new_zeros(votes.shape[:3])  # B J I
    for k in range(iterations):
        c = b.softmax(dim=1)  # B J I
        s = (c.unsqueeze(-1) * votes).sum(dim=2)  # B J D
        v = squash(s if bias is None else s + bias)  # B J D
        if k < iterations - 1:
            distance = length(votes - v.unsqueeze(2))  # B J I
            b = scale(len(weight)) * distance / distance.mean(dim=1, keepdim=True).clamp_min(TINY)
    return v


def by_parent(weight: Tensor) -> Tensor:
    """A routed layer's weight (I, J, d, D) as public code holds it (J, I, D, d), so that no pass has to turn it."""
    return weight.detach().permute(1, 0, 3, 2).contiguous()


def network(model: GammaCapsNet, layers: Sequence[Callable[[Tensor], Tensor]]) -> Callable[[Tensor], Tensor]:
    """Images to scores with the model's weights, through library convolutions and `layers`, one for each routing."""
    plain = by_library(model)

    def scores(images: Tensor) -> Tensor:
        poses = plain.encode(images)  # B I d
        for layer in layers:
            poses = layer(poses)  # B J D
        return length(poses)

    return scores
