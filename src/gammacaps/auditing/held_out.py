"""Class sets found on one half of the images and tested on the other: luck can't help there."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gammacaps.auditing.kinds import View
from gammacaps.data.split import rank_in_class
from gammacaps.metrics.usefulness import usefulness, worst_case


def halves(labels: Int[Tensor, "M"]) -> Bool[Tensor, "M"]:
    """True for the first, third, ... image of each class."""
    return torch.from_numpy(rank_in_class(labels.cpu().numpy()) % 2 == 0).to(labels.device)


def holds(seen: View, shortest: Float[Tensor, "M I"], longest: Float[Tensor, "M I"]) -> list[bool | None]:
    """Whether each capsule has gamma > 0 on either half for the classes that it speaks for on the other half.

    None of capsules that are not useful, which were not attacked, and where a half has no images.
    """
    first = halves(seen.labels)
    if first.all():
        return [None] * len(seen.useful)
    surely, possibly = shortest > seen.tau, longest > seen.tau
    robust = seen.useful.clone()
    for found, tested in ((first, ~first), (~first, first)):
        sets = usefulness(seen.active[found], seen.labels[found], seen.sets.shape[1]).classes
        gamma = worst_case(surely[tested], possibly[tested], seen.labels[tested], sets).mean(0)
        robust &= gamma > 1e-9
    return [holds if useful else None for holds, useful in zip(robust.tolist(), seen.useful.tolist(), strict=True)]
