"""Whether a network is as sure as it is right: reliability, and accuracy where it may leave out what it doubts."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gammacaps.errors import InputError

BINS = 15


@dataclass(frozen=True)
class Bin:
    """The images of which a network is about equally sure."""

    low: float  # its sureness is above this
    high: float  # and at most this
    images: int
    sure: float | None  # the mean over them; None where there are none
    right: float | None


def reliability(sure: Float[Tensor, "M"], right: Bool[Tensor, "M"], bins: int = BINS) -> list[Bin]:
    """The images by how sure the network is, in steps of equal width from 0 to 1, and how often it is right in each."""
    _check(sure, right)
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)
    where = torch.bucketize(sure.detach().cpu().double(), edges[1:-1])  # a bin holds its upper edge
    sure, right = sure.detach().cpu().double(), right.cpu().double()
    result = []
    for k in range(bins):
        mine, low, high = where == k, edges[k].item(), edges[k + 1].item()
        count = int(mine.sum())
        means = (sure[mine].mean().item(), right[mine].mean().item()) if count else (None, None)
        result.append(Bin(low, high, count, *means))
    return result


def calibration_error(bins: list[Bin]) -> float:
    """The expected calibration error: the mean over the images of how far sureness and share of right ones differ."""
    total = sum(each.images for each in bins)
    filled = ((each.images, each.sure, each.right) for each in bins)
    gaps = (count * abs(sure - right) for count, sure, right in filled if sure is not None and right is not None)
    return sum(gaps) / total


def answered(sure: Float[Tensor, "M"], right: Bool[Tensor, "M"], share: float) -> float:
    """The accuracy on this share of the images (at least one): those of which the network is surest."""
    _check(sure, right)
    if not 0 < share <= 1:
        raise InputError(f"The share of images that are answered must be above 0 and at most 1, not {share}.")
    order = sure.detach().cpu().argsort(descending=True, stable=True)
    count = max(1, round(share * len(order)))
    return right.cpu()[order[:count]].double().mean().item()


def _check(sure: Tensor, right: Tensor) -> None:
    if len(sure) == 0 or len(sure) != len(right):
        raise InputError(f"There must be a sureness for each answer, not {len(sure)} for {len(right)}.")
    if not ((sure >= 0) & (sure <= 1)).all():
        raise InputError("How sure a network is must lie from 0 to 1: give probabilities or lengths.")
