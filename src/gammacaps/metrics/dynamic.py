"""The D-score: how much the capsules of a layer react to the input (equation 3)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torchmetrics import Metric

from gammacaps.errors import InputError


def d_score(activations: Float[Tensor, "M J"], *, batch_size: int | None = None) -> Float[Tensor, ""]:
    """D: the largest standard deviation, over M examples, of any capsule's activation.

    With `batch_size`, the mean of the D-scores of consecutive batches, as the paper's tables report it (100). It
    moves with the batch size, since a maximum over noisier estimates is larger. An incomplete last batch is left
    out unless it is the only one.
    """
    if batch_size is None or len(activations) <= batch_size:
        return _compute(*_update(activations))
    batches = activations.split(batch_size)[: len(activations) // batch_size]
    return torch.stack([_compute(*_update(batch)) for batch in batches]).mean()


class DScore(Metric):
    """D over any number of batches and processes, exact whatever their size: `update(activations)`."""

    higher_is_better = True
    is_differentiable = False
    full_state_update = False
    count: Tensor
    total: Tensor
    squares: Tensor

    def __init__(self, capsules: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("count", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("total", torch.zeros(capsules, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("squares", torch.zeros(capsules, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, activations: Tensor) -> None:
        count, total, squares = _update(activations)
        if total.shape != self.total.shape:
            raise InputError(f"This D-score is of {len(self.total)} capsules, but was given {len(total)}.")
        self.count += count
        self.total += total
        self.squares += squares

    def compute(self) -> Tensor:
        return _compute(self.count, self.total, self.squares)


def _update(activations: Tensor) -> tuple[int, Tensor, Tensor]:
    """Count, sum and sum of squares, in float64: activations lie in [0, 1], so D is exact to 1e-8."""
    if activations.dim() != 2 or activations.numel() == 0:
        raise InputError(
            f"The D-score takes activations (M, J) of at least 1 example and 1 capsule, not {tuple(activations.shape)}."
        )
    wide = activations.double()
    return len(wide), wide.sum(dim=0), wide.square().sum(dim=0)


def _compute(count: Tensor | int, total: Tensor, squares: Tensor) -> Tensor:
    if count == 0:
        raise InputError("There is no D-score of no examples: give it the activations of at least one.")
    variance = squares / count - (total / count).square()
    return variance.clamp_min(0).sqrt().max()
