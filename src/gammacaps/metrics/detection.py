"""How well one number tells things that a network knows from things that it has never seen."""

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.errors import InputError

KEPT = 0.95  # of the known things that are let through, where false alarms are counted


def auroc(known: Float[Tensor, "M"], unseen: Float[Tensor, "K"]) -> float:
    """How often a known thing has the higher number of two, one known and one unseen; equal ones count half.

    It is the area under the ROC curve: 1 where the two are told apart, 0.5 where they are alike.
    """
    _check(known, unseen)
    known, unseen = known.detach().cpu().double(), unseen.detach().cpu().double().sort().values
    below = torch.searchsorted(unseen, known)
    not_above = torch.searchsorted(unseen, known, right=True)
    return ((below + not_above).double() / 2).mean().item() / len(unseen)


def false_alarms(known: Float[Tensor, "M"], unseen: Float[Tensor, "K"], kept: float = KEPT) -> float:
    """The share of unseen things that pass for known where the threshold lets through this share of the known ones.

    Often called FPR at 95%. The threshold is the highest number that so many of the known things reach.
    """
    _check(known, unseen)
    ordered = known.detach().cpu().double().sort(descending=True).values
    needed = max(1, -int(-kept * len(ordered) // 1))  # rounded up
    return (unseen.detach().cpu().double() >= ordered[needed - 1]).double().mean().item()


def _check(known: Tensor, unseen: Tensor) -> None:
    if len(known) == 0 or len(unseen) == 0:
        raise InputError("Known and unseen things can be told apart only where there are some of both.")
    for each in (known, unseen):
        if each.isnan().any():
            raise InputError("A number by which things are told apart is not a number: correct it.")
