"""Networks beside each other: where they are alike on familiar viewpoints, and at the end of training.

The images of one toy are alike, so that intervals are over toys: each resample draws as many toys of each class as
there are, with all their images. Toys that several seeds have tested count once, with the images of all seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

RESAMPLES = 10_000
BASELINE = "CNN"
Row = dict[str, Any]  # a training
Point = dict[str, Any]  # of its curve


@dataclass(frozen=True)
class Estimate:
    """A share, or a difference of two, with its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ({100 * self.low:.1f} to {100 * self.high:.1f})"


def share_right(row: Row, point: Point, part: str) -> float:
    """Of the images of one part."""
    return sum(point[part]) / sum(row["toy_images"][part])


def level(rows: Sequence[Row]) -> float:
    """The share of familiar viewpoints' images that every network has at the end of training, or more."""
    return min(share_right(row, row["curve"][-1], "familiar") for row in rows)


def stopped_at(row: Row, goal: float) -> Point:
    """The first measurement with so much right of the familiar viewpoints."""
    reached = (point for point in row["curve"] if share_right(row, point, "familiar") >= goal)
    return next(reached, row["curve"][-1])


def last(row: Row, goal: float) -> Point:
    """The end of training."""
    return row["curve"][-1]


Moment = Callable[[Row, float], Point]


def of_toys(rows: Sequence[Row], goals: dict[int, float], moment: Moment, part: str) -> dict[int, tuple[int, int]]:
    """Right answers and images of each toy, over the trainings of one network with all its seeds."""
    counts: dict[int, tuple[int, int]] = {}
    for row in rows:
        point = moment(row, goals[row["seed"]])
        for toy, right, images in zip(row["toys"][part], point[part], row["toy_images"][part], strict=True):
            before = counts.get(toy, (0, 0))
            counts[toy] = (before[0] + right, before[1] + images)
    return counts


def estimate(counts: dict[int, tuple[int, int]], other: dict[int, tuple[int, int]] | None = None) -> Estimate:
    """The share right, or how much larger it is than the other's, whose toys are the same."""
    toys = sorted(counts)
    drawn = resamples(toys)
    value, resampled = _shares(toys, counts, drawn)
    if other is not None:
        other_value, other_resampled = _shares(toys, other, drawn)
        value, resampled = value - other_value, resampled - other_resampled
    low, high = torch.quantile(resampled, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return Estimate(value, low, high)


def resamples(toys: list[int]) -> Tensor:
    """Places of toys (R, T), drawn with replacement among those of the same class.

    Of n toys n - 1 are drawn: of so few, n would make intervals too narrow by the share (n - 1) / n of the variance.
    """
    generator = torch.Generator().manual_seed(0)
    classes = torch.tensor(toys) // 10
    drawn = []
    for one in classes.unique():
        places = (classes == one).nonzero().squeeze(1)
        drawn.append(places[torch.randint(len(places), (RESAMPLES, max(1, len(places) - 1)), generator=generator)])
    return torch.cat(drawn, dim=1)


def _shares(toys: list[int], counts: dict[int, tuple[int, int]], drawn: Tensor) -> tuple[float, Tensor]:
    right, images = torch.tensor([counts[toy] for toy in toys], dtype=torch.float64).unbind(1)  # T each
    return float(right.sum() / images.sum()), right[drawn].sum(1) / images[drawn].sum(1)


@dataclass(frozen=True)
class Line:
    """A network in one of the two comparisons."""

    network: str
    parameters: int
    steps: tuple[int, ...]  # of each seed
    familiar: Estimate
    new: Estimate
    more: Estimate | None  # of the new viewpoints than the CNN; None for itself, and without one


def compare(rows: Sequence[Row], moment: Moment) -> list[Line]:
    """All networks of one split by viewpoint, seeds together; each seed has its own level to be alike at."""
    seeds = sorted({row["seed"] for row in rows})
    goals = {seed: level([row for row in rows if row["seed"] == seed]) for seed in seeds}
    names = list(dict.fromkeys(row["network"] for row in rows))
    of = {name: [row for row in rows if row["network"] == name] for name in names}
    new = {name: of_toys(of[name], goals, moment, "new") for name in names}
    lines = []
    for name in names:
        steps = tuple(moment(row, goals[row["seed"]])["step"] for row in of[name])
        familiar = estimate(of_toys(of[name], goals, moment, "familiar"))
        against = new.get(BASELINE)
        more = None if against is None or name == BASELINE else estimate(new[name], against)
        lines.append(Line(name, of[name][0]["parameters"], steps, familiar, estimate(new[name]), more))
    return lines


def tables(rows: Sequence[Row]) -> str:
    """Markdown: for each split by viewpoint a table at matched accuracy and one of the end of training."""
    moments: dict[str, Moment] = {"stopped where familiar viewpoints are alike": stopped_at, "end of training": last}
    blocks = []
    for by in dict.fromkeys(row["viewpoints"] for row in rows):
        own = [row for row in rows if row["viewpoints"] == by]
        for title, moment in moments.items():
            lines = [f"{by}, {title}", ""]
            lines.append("| network | parameters | steps | familiar, % | new, % | new: more than the CNN |")
            lines.append("| --- | --- | --- | --- | --- | --- |")
            for line in compare(own, moment):
                steps = ", ".join(f"{step:,}" for step in line.steps)
                cells = (line.network, f"{line.parameters:,}", steps, line.familiar, line.new, line.more or "")
                lines.append(f"| {' | '.join(map(str, cells))} |")
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
