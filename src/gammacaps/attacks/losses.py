"""What an attack makes large: one number an image, from its scores and labels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from gammacaps.errors import InputError, check_choice

AttackLoss: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def margin(scores: Float[Tensor, "B N"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """The best wrong score less the true one: above 0 exactly where the image is misclassified."""
    true = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
    wrong = scores.scatter(1, labels.unsqueeze(1), -torch.inf)
    return wrong.amax(dim=1) - true


def ce(scores: Float[Tensor, "B N"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Cross-entropy of the scores as logits, as the paper's code attacks."""
    return cross_entropy(scores, labels, reduction="none")


def ce_log(scores: Float[Tensor, "B N"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Cross-entropy of lengths as shares of their sum, so that confidence can reach 1."""
    # On a GPU the answer would have to be waited for.
    if not scores.is_cuda and (scores < 0).any():
        raise InputError("The attack's loss 'ce-log' takes lengths, but a score is negative: use 'ce' for logits.")
    return cross_entropy(scores.clamp_min(1e-12).log(), labels, reduction="none")


def dlr(scores: Float[Tensor, "B N"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Difference of logits ratio (Croce and Hein, 2020): the margin over the gap from the first to the third score."""
    if scores.shape[1] < 3:
        raise InputError(f"The attack's loss 'dlr' needs 3 classes, not {scores.shape[1]}: use 'margin'.")
    ordered = scores.sort(dim=1, descending=True).values
    return margin(scores, labels) / (ordered[:, 0] - ordered[:, 2]).clamp_min(1e-12)


LOSSES: dict[str, AttackLoss] = {"margin": margin, "ce": ce, "ce-log": ce_log, "dlr": dlr}


@dataclass(frozen=True, eq=False)
class Against:
    """A loss that holds an image's scores against others, such as those it had without attack."""

    function: Callable[[Tensor, Tensor], Tensor]  # of the others and the scores, both (B, N), to (B,)
    others: Tensor  # B N

    def __call__(self, scores: Float[Tensor, "B N"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
        return self.function(self.others, scores)


def loss_of(loss: str | AttackLoss) -> AttackLoss:
    """A loss by its name, or a user's own function of scores (B, N) and labels (B,) to (B,)."""
    if callable(loss):
        return loss
    check_choice("loss of an attack", loss, LOSSES)
    return LOSSES[loss]
