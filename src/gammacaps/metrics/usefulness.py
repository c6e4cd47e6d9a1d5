"""Usefulness: what a capsule's activity says of the class, and what is left of it under attack (Definitions 3.1, 3.2).

The feature of a capsule is f(x) = e where it is active and 0 elsewhere, with e in {0, 1}^N the set of classes that it
speaks for; the label y is N - 1 at its class and -1 elsewhere. docs/decisions.md has the proofs.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from gammacaps.errors import InputError
from gammacaps.options import check_seed, check_whole


class Useful(NamedTuple):
    """How useful each capsule's best feature is, and for which classes."""

    value: Tensor  # I
    classes: Tensor  # I N, bool: the sets e


def usefulness(active: Bool[Tensor, "M I"], labels: Int[Tensor, "_"], classes: int) -> Useful:
    """rho = sum_n max(0, N P(active, n) - P(active)), the largest of Definition 3.1 over all 2^N class sets.

    Args:
        active: which of the I capsules are active in each of M images.
        labels: the images' classes, from 0 to `classes` - 1.
    """
    gain = _gains(_shares(active, labels, classes))
    return Useful(gain.clamp_min(0).sum(1), gain > 0)


def worst_case(
    surely: Bool[Tensor, "M I"],
    possibly: Bool[Tensor, "M I"],
    labels: Int[Tensor, "_"],
    sets: Bool[Tensor, "I N"],
) -> Float[Tensor, "M I"]:
    """inf over the perturbations of sum_n y^(n) f(x)^(n), image by image; its mean is gamma (Definition 3.2).

    Without perturbations, where both are the plain activity, the mean is rho.

    Args:
        surely: which capsules stay active whatever the perturbation.
        possibly: which capsules are active or can be made so.
        sets: the classes that each capsule speaks for.
    """
    _check(surely, labels, sets.shape[1])
    size = sets.sum(1).double()  # I
    speaks = sets[:, labels].T  # M I: for the class of this image
    return torch.where(speaks, surely * (sets.shape[1] - size), -(possibly * size))


def robust_usefulness(
    surely: Bool[Tensor, "M I"], possibly: Bool[Tensor, "M I"], labels: Int[Tensor, "_"], classes: int
) -> Useful:
    """The largest gamma over all class sets but the empty and the full one, and the set that has it.

    Among the sets of k classes it is the k with the largest (N - k) P(surely, n) + k P(possibly, n).
    """
    stays, can = _shares(surely, labels, classes), _shares(possibly, labels, classes)  # I N
    best = torch.full((surely.shape[1],), -torch.inf, dtype=torch.float64, device=surely.device)
    sets = torch.zeros_like(stays, dtype=torch.bool)
    for k in range(1, classes):
        top = ((classes - k) * stays + k * can).topk(k, dim=1)
        value = top.values.sum(1) - k * can.sum(1)
        better = value > best
        best = torch.where(better, value, best)
        chosen = torch.zeros_like(sets).scatter(1, top.indices, True)
        sets = torch.where(better.unsqueeze(1), chosen, sets)
    return Useful(best, sets)


def chance_level(
    active: Bool[Tensor, "M I"], labels: Int[Tensor, "_"], classes: int, *, shuffles: int = 200, seed: int = 0
) -> Float[Tensor, "I"]:
    """The rho that 95% of shuffled labels stay at or under.

    The rho of a sample is never below 0, and above 0 by luck; a capsule that knows nothing stays under this.
    """
    check_whole("shuffles", shuffles)
    check_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(len(labels), generator=generator).to(labels.device) for _ in range(shuffles)]
    reached = torch.stack([usefulness(active, labels[order], classes).value for order in orders])  # shuffles I
    return reached.quantile(0.95, dim=0, interpolation="higher")


def _shares(active: Tensor, labels: Tensor, classes: int) -> Float[Tensor, "I N"]:
    """P(active, n): the share of all images that are of class n and activate the capsule."""
    _check(active, labels, classes)
    return active.double().T @ one_hot(labels.long(), classes).double() / len(labels)


def _gains(shares: Float[Tensor, "I N"]) -> Float[Tensor, "I N"]:
    """N P(active, n) - P(active): what class n adds to a set; nothing where it is rounding error."""
    gain = shares.shape[1] * shares - shares.sum(1, keepdim=True)
    return torch.where(gain.abs() < 1e-12, 0.0, gain)


def _check(active: Tensor, labels: Tensor, classes: int) -> None:
    if len(labels) == 0 or len(active) != len(labels):
        raise InputError(
            f"Usefulness takes as many labels as images, at least 1, not {len(labels)} labels for {len(active)} images."
        )
    if classes < 2 or labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"Usefulness takes labels from 0 to {classes - 1} of at least 2 classes: correct the labels.")
