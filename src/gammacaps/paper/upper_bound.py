"""What no classifier can keep under attack: images that can be turned into one another are alike to it."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK = 64


def upper_bound(distances: Float[Tensor, "n n"], eps: float) -> float:
    """A share of some images that no deterministic classifier can surpass at an L-inf radius.

    Two images of different classes at most 2 eps apart have a point within eps of both, where it gives one answer: it
    is wrong on one of the two. So are as many as there are such pairs without a common image. They are paired greedily,
    those with the fewest partners first: there may be more pairs, so the share need not be one that can be reached.
    More images give more pairs.
    """
    near = distances <= 2 * eps
    partners = near.sum(dim=1)
    free = partners > 0
    pairs = 0
    for i in partners.argsort(stable=True).tolist():
        if not free[i]:
            continue
        left = (near[i] & free).nonzero().flatten()
        if len(left):
            free[i] = free[left[partners[left].argmin()]] = False
            pairs += 1
    return 1 - pairs / len(distances)


def between_classes(images: Float[Tensor, "n C H W"], labels: Int[Tensor, " n"]) -> Float[Tensor, "n n"]:
    """The L-inf distances between images; infinite between those of one class."""
    flat = images.flatten(1)
    rows = []
    for place in range(0, len(flat), CHUNK):
        here = slice(place, place + CHUNK)
        apart = torch.cdist(flat[here], flat, p=torch.inf)
        rows.append(apart.masked_fill(labels[here, None] == labels[None, :], torch.inf))
    return torch.cat(rows)
