"""Which patch of the image each primary capsule looks at."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.explorer.answers.images import SEED
from gammacaps.explorer.jobs.job import Tick
from gammacaps.explorer.networks import Network

IMAGES = 4  # over which a patch is averaged
WITHIN = 0.8  # of what a capsule depends on lies between the patch's sides, in each direction
BATCH = 64


def patches(network: Network, tick: Tick) -> dict[str, Any]:
    """A box [left, top, width, height] for each place of the primary capsules' grid, in shares of the image.

    Where capsules see most of the image, as behind many convolutions, they still depend on its middle most. So the
    box holds most of the gradient's absolute value, by rows and by columns.
    """
    model, (rows, columns) = network.capsules, network.capsules.grids[0]
    types = network.counts[0] // (rows * columns)
    images = network.images[:IMAGES]
    if len(images) == 0:
        generator = torch.Generator().manual_seed(SEED)
        images = torch.rand(IMAGES, *network.model.image_shape, generator=generator).to(images.device)
    pairs = [(place, k) for place in range(rows * columns) for k in range(len(images))]
    found: list[Tensor] = []
    for first in range(0, len(pairs), BATCH):
        tick(first, len(pairs))
        part = pairs[first : first + BATCH]
        chosen = torch.tensor([place for place, _ in part], device=images.device)
        leaf = images[[k for _, k in part]].detach().clone().requires_grad_()
        with torch.enable_grad():
            lengths = model.parse(leaf, couplings=False).activations[0].unflatten(1, (rows * columns, types))
            own = lengths.sum(2).gather(1, chosen.unsqueeze(1)).sum()  # of all types at a place
            (gradient,) = torch.autograd.grad(own, leaf)
        found.append(gradient.nan_to_num().abs().sum(1).cpu())
    change = torch.cat(found).unflatten(0, (rows * columns, len(images))).mean(1)  # places H W
    return {"grid": [rows, columns], "types": types, "boxes": [box_of(each) for each in change]}


def box_of(change: Float[Tensor, "H W"]) -> list[float]:
    (top, bottom), (left, right) = (middle_of(change.sum(over)) for over in (1, 0))
    return [round(value, 4) for value in (left, top, right - left, bottom - top)]


def middle_of(weights: Float[Tensor, "n"]) -> tuple[float, float]:
    """Where the middle part of these weights begins and ends, in shares of their number; all of it where all are 0."""
    below = weights.double().cumsum(0)
    if below[-1] <= 0:
        return 0.0, 1.0
    below, rest = below / below[-1], (1 - WITHIN) / 2
    first, last = int((below <= rest).sum()), int((below < 1 - rest).sum())
    return first / len(weights), (last + 1) / len(weights)
