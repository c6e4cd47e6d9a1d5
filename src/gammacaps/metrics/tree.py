"""The T-score: how close the couplings of a layer are to a tree (equations 1 and 2)."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torchmetrics import Metric

from gammacaps.errors import InputError


def t_score(couplings: Float[Tensor, "M I J"], parents: Int[Tensor, "I"] | None = None) -> Float[Tensor, ""]:
    """T = 1 - H / log J: 1 where every capsule has one parent, 0 where all couplings are equal.

    Args:
        couplings: M examples of I lower and J upper capsules, summing to 1 over J.
        parents: how many of the J upper capsules each lower one can reach (matrix capsules see a window); its
            entropy is then divided by the logarithm of that number, and capsules that reach fewer than 2 are left out.
    """
    return _compute(*_update(couplings, parents))


def t_scores(couplings: Float[Tensor, "M I J"], parents: Int[Tensor, "I"] | None = None) -> Float[Tensor, "M"]:
    """The T-score of each example."""
    return 1 - _entropies(couplings, parents).mean(dim=1)


class TScore(Metric):
    """T over any number of batches and processes: `update(couplings, parents=None)`."""

    higher_is_better = True
    is_differentiable = False
    full_state_update = False
    entropy: Tensor
    count: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("entropy", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, couplings: Tensor, parents: Tensor | None = None) -> None:
        entropy, count = _update(couplings, parents)
        self.entropy += entropy
        self.count += count

    def compute(self) -> Tensor:
        return _compute(self.entropy, self.count)


def _update(couplings: Tensor, parents: Tensor | None) -> tuple[Tensor, int]:
    """The sum of the normalised entropies of all couplings, and how many there were."""
    normalised = _entropies(couplings, parents)
    return normalised.sum(), normalised.numel()


def _entropies(couplings: Tensor, parents: Tensor | None) -> Tensor:
    """The normalised entropies of the couplings of each capsule that chooses, an example a row."""
    if couplings.dim() != 3 or couplings.shape[-1] < 2 or couplings.numel() == 0:
        raise InputError(
            "The T-score takes couplings (M, I, J) of at least 1 example and 1 lower capsule to at least 2 upper "
            f"capsules, not {tuple(couplings.shape)}."
        )
    entropy = torch.special.entr(couplings.double()).sum(dim=-1)  # M I; 0 log 0 = 0
    if parents is None:
        most = torch.full((couplings.shape[1],), couplings.shape[2], device=couplings.device)
    else:
        most = parents.to(couplings.device)
    chooses = most > 1  # I
    return entropy[:, chooses] / most[chooses].double().log()


def _compute(entropy: Tensor, count: Tensor | int) -> Tensor:
    if count == 0:
        raise InputError("There is no T-score: give it couplings of capsules that can reach at least 2 parents.")
    return 1 - entropy / count
