"""Turns, shifts and scalings as an attack (Engstrom et al., 2019): the worst of a grid that is tried whole.

It is no entry of the table of attacks, whose attacks stay within a radius eps of the image: a turned image is far
away in every norm, and yet shows the same thing. `gammacaps evaluate --beyond` measures it.
"""

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gammacaps.attacks.checks import check_attack, check_scores
from gammacaps.attacks.gradient import Classifier, Worst
from gammacaps.attacks.losses import margin
from gammacaps.errors import InputError, check_choice
from gammacaps.nn.frozen import frozen
from gammacaps.ops.placing import EDGES, placed
from gammacaps.options import check_amount, check_whole
from gammacaps.replay import replayed


@dataclass(frozen=True)
class Grid:
    """What is tried: each turn with each shift to the right, each down and each scaling."""

    turn: float = 30.0  # degrees to either side, at most
    shift: float = 3.0  # pixels in each direction, at most
    zoom: float = 0.1  # scaled by 1 +- this, at most
    turns: int = 13  # how many values each has, from the least to the most, the middle one being no change
    shifts: int = 5
    zooms: int = 3

    def __post_init__(self) -> None:
        check_amount("turn", self.turn, most=180)
        check_amount("shift", self.shift, most=1e4)
        if not 0 <= self.zoom < 1:
            raise InputError(f"zoom must be from 0 to less than 1, not {self.zoom}.")
        for name in ("turns", "shifts", "zooms"):
            check_whole(name, getattr(self, name), most=1000)
            if getattr(self, name) % 2 == 0:
                raise InputError(f"{name} must be odd, so that the middle is no change, not {getattr(self, name)}.")

    def placements(self) -> list[dict[str, float]]:
        """All of them, the furthest first, by which most images that can be broken are broken soonest."""
        turns, shifts = _spread(self.turn, self.turns), _spread(self.shift, self.shifts)
        scales = [1 + zoom for zoom in _spread(self.zoom, self.zooms)]
        tried = itertools.product(turns, shifts, shifts, scales)
        every = [{"turn": a, "right": r, "down": d, "scale": s} for a, r, d, s in tried]
        return sorted(every, key=self._far, reverse=True)

    def _far(self, one: dict[str, float]) -> float:
        """How far a placement is from none, in shares of the most."""
        shift = math.hypot(one["right"], one["down"]) / (self.shift or 1)
        return abs(one["turn"]) / (self.turn or 1) + shift + abs(one["scale"] - 1) / (self.zoom or 1)


def spatial(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    *,
    grid: Grid | None = None,
    edges: str = "black",
    until_broken: bool = False,
) -> Tensor:
    """The images (B, C, H, W) turned, shifted and scaled as the classifier takes worst.

    Args:
        model: gives scores (B, N) for images.
        grid: what is tried, each image at all of it; without one 13 turns to 30 degrees, 5 x 5 shifts to 3 pixels
            and 3 scalings to a tenth.
        edges: what comes in from outside: "black" as in the paper, or the image's edges "continued".
        until_broken: leave an image alone once it is broken, and take the first placement that did it: the accuracy is
            the same, and found sooner.

    >>> import gammacaps
    >>> model, (images, labels) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    >>> grid = gammacaps.attacks.Grid(turns=3, shifts=1, zooms=1)
    >>> gammacaps.attacks.spatial(model, images[:5], labels[:5], grid=grid).shape
    torch.Size([5, 1, 28, 28])
    """
    check_attack(images, labels, eps=0)
    check_choice("way to fill in the edges", edges, EDGES)
    images, labels, worst = images.detach(), labels.long(), Worst(images.detach())
    if len(images) == 0:
        return worst.images
    alive = torch.arange(len(images), device=images.device)  # the images still worked on
    answer = replayed(model) if isinstance(model, nn.Module) else model
    with frozen(model), torch.no_grad():
        for place in (grid or Grid()).placements():
            points, goal = placed(images[alive], edges=edges, **place), labels[alive]
            scores = answer(points)
            check_scores(scores, goal)
            broken = scores.argmax(dim=1) != goal
            worst.add(alive, points, margin(scores, goal).float(), broken)
            if until_broken:
                alive = alive[~broken]
                if len(alive) == 0:
                    break
    return worst.images


def _spread(most: float, count: int) -> list[float]:
    """So many values from -most to most; none but 0 where there is only one."""
    return [most * (2 * k / (count - 1) - 1) for k in range(count)] if count > 1 else [0.0]
