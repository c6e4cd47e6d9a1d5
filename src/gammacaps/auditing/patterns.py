"""How well the class can be told from which capsules are active, and from nothing else."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gammacaps.auditing.held_out import halves


def told_by_pattern(
    clean: Bool[Tensor, "M I"], attacked: Bool[Tensor, "M I"], labels: Int[Tensor, "M"], classes: int
) -> dict[str, Any] | None:
    """The share of images whose class is told from the on/off pattern of I capsules, clean and attacked.

    By naive Bayes, fitted to the clean images of one half and tested on the other, both ways round. None where a half
    has no images.
    """
    first = halves(labels)
    if first.all():
        return None
    right = torch.zeros(2, len(labels), dtype=torch.bool, device=labels.device)
    for fitted, tested in ((first, ~first), (~first, first)):
        on, off, prior = fit(clean[fitted], labels[fitted], classes)
        for row, active in enumerate((clean, attacked)):
            seen = active[tested].to(on)
            scores = seen @ on.T + (1 - seen) @ off.T + prior  # M/2 N
            right[row, tested] = scores.argmax(1) == labels[tested]
    plain, under_attack = right.double().mean(1).tolist()
    return {"method": "naive Bayes", "capsules": clean.shape[1], "clean": plain, "attacked": under_attack}


def fit(
    active: Bool[Tensor, "M I"], labels: Int[Tensor, "M"], classes: int
) -> tuple[Float[Tensor, "N I"], Float[Tensor, "N I"], Float[Tensor, "N"]]:
    """For each class the logarithms of how probable each capsule is on, off, and of the class itself.

    One image more in which it is on and one in which it is off is counted, so that none is impossible.
    """
    member = torch.nn.functional.one_hot(labels, classes).double()  # M N
    count = member.sum(0)  # N
    share = (member.T @ active.double() + 1) / (count.unsqueeze(1) + 2)  # N I
    return share.log(), (1 - share).log(), ((count + 1) / (count.sum() + classes)).log()
