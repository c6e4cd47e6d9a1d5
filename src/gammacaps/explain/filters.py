"""The filters of the first convolution, and how concentrated their weights are (the paper's appendix H)."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.explain.pictures import Row, grid_png, paper_colour, plain
from gammacaps.short_repr import short_repr

NEGATIVE, POSITIVE = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)


@dataclass(frozen=True, eq=False)
class Filters:
    """Filters learned under attack have few large weights, those learned without have many middling ones."""

    weights: Tensor  # K C h w
    largest_tenth: Tensor  # K: share of a filter's absolute weight in the largest tenth of its weights, 0.1 to 1
    participation: Tensor  # K: share of the weights that take part, 1 for a flat filter, 1/n for one weight of n
    mean_largest_tenth: float
    mean_participation: float
    meaning: str

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "largest_tenth": plain(self.largest_tenth),
            "participation": plain(self.participation),
            "mean_largest_tenth": round(self.mean_largest_tenth, 4),
            "mean_participation": round(self.mean_participation, 4),
            "meaning": self.meaning,
        }

    def png(self) -> bytes:
        """All filters, each on its own scale: the paper's colour is 0, vermillion positive, blue negative.

        With three channels red, green and blue are the weights of each, and grey is 0.
        """
        scale = self.weights.abs().amax((1, 2, 3), keepdim=True).clamp_min(1e-12)
        cells = [_tinted(scaled) for scaled in self.weights / scale]
        columns = math.ceil(math.sqrt(len(cells)))
        return grid_png([Row(cells[k : k + columns]) for k in range(0, len(cells), columns)], side=36, gap=3)

    _repr_png_ = png


def first_filters(model: nn.Module) -> Filters:
    """The filters of a network's first convolution, capsules or not."""
    first = next((layer for layer in model.modules() if isinstance(layer, nn.Conv2d)), None)
    if first is None:
        raise InputError(f"A {type(model).__name__} has no convolution, so no filters: use a network that has one.")
    weights = first.weight.detach().cpu().contiguous()
    tenth, part = largest_tenth(weights), participation(weights)
    meaning = (
        f"The largest tenth of a filter's weights holds {tenth.mean():.0%} of its absolute weight "
        f"(10% where all are equal, 19% at random as at the start, 100% where a tenth does all the work)."
    )
    return Filters(weights, tenth, part, tenth.mean().item(), part.mean().item(), meaning)


def largest_tenth(weights: Float[Tensor, "K C h w"]) -> Float[Tensor, "K"]:
    """Share of each filter's absolute weight that lies in the largest tenth of its weights; zeros count as equal."""
    sizes = _sizes(weights)
    count = sizes.shape[1] / 10
    ordered = sizes.sort(dim=1, descending=True).values
    whole = math.floor(count)
    # A tenth of 81 weights is 8.1: eight and a tenth of the ninth, so that a flat filter has 0.1 at every size.
    top = ordered[:, :whole].sum(1) + (count - whole) * ordered[:, min(whole, ordered.shape[1] - 1)]
    return (top / sizes.sum(1)).float()


def participation(weights: Float[Tensor, "K C h w"]) -> Float[Tensor, "K"]:
    """The participation ratio (sum w^2)^2 / (n sum w^4) of each filter of n weights; zeros count as equal."""
    squares = _sizes(weights).square()
    return (squares.sum(1).square() / (squares.shape[1] * squares.square().sum(1))).float()


def _sizes(weights: Tensor) -> Float[Tensor, "K n"]:
    """Absolute weights relative to the filter's largest; all 1 for a filter of zeros."""
    sizes = weights.double().abs().flatten(1)
    most = sizes.amax(1, keepdim=True)
    return torch.where(most > 0, sizes / most.clamp_min(torch.finfo(torch.float64).tiny), 1.0)


def _tinted(scaled: Float[Tensor, "C h w"]) -> Float[Tensor, "3 h w2"]:
    """Weights in [-1, 1] as colours; channels side by side unless they are three."""
    if len(scaled) == 3:
        return (scaled + 1) / 2
    flat = torch.cat(list(scaled), dim=1)  # h C*w
    negative, positive = (torch.tensor(colour).view(3, 1, 1) / 255 for colour in (NEGATIVE, POSITIVE))
    end = torch.where(flat < 0, negative, positive)
    zero = torch.tensor(paper_colour()).view(3, 1, 1)
    return (zero + (end - zero) * flat.abs()).float()
