"""results.json: the figures of an evaluation. `evaluate` writes them, and here stands what fits."""

from dataclasses import dataclass, field
from typing import Any, Literal

from gammacaps.names import NormName, VerdictWord
from gammacaps.options import MOST_IN_CODE
from gammacaps.runs.typed_json import Misfit

FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class DataOf:
    """The images that figures are of."""

    name: str
    source: str
    split: str
    images: int


@dataclass(frozen=True, kw_only=True)
class Share:
    """How many of how many images are right, with the 95% interval of the share."""

    accuracy: float | None
    interval: tuple[float, float] | None
    correct: int
    images: int

    def __post_init__(self) -> None:
        low, high = self.interval or (0, 1)
        known = (self.accuracy is None) == (self.interval is None) == (self.images == 0)
        if not (known and 0 <= self.correct <= self.images and 0 <= low <= (self.accuracy or low) <= high <= 1):
            raise Misfit(f"{self.correct} right of {self.images} can't be the share {self.accuracy} in {self.interval}")


@dataclass(frozen=True, kw_only=True)
class AttackRow(Share):
    """Accuracy under one attack at one radius."""

    norm: NormName
    attack: str
    eps: float
    steps: int | None
    step: float | None
    restarts: int
    loss: str | None
    seconds: float
    complete: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("steps", self.steps), ("restarts", self.restarts)):
            if value is not None and not 1 <= value <= MOST_IN_CODE:
                raise Misfit(f"{name} of the attack {self.attack:.40} must be from 1 to {MOST_IN_CODE:,}, not {value}")


@dataclass(frozen=True)
class Won:
    """How many images an attack broke, and how many it alone."""

    broke: int
    alone: int


@dataclass(frozen=True, kw_only=True)
class WorstRow(Share):
    """The images that stand under every attack at one radius."""

    eps: float
    complete: bool
    won: dict[str, Won]


@dataclass(frozen=True)
class CheckRow:
    """One check of whether the figures can be believed."""

    check: str
    verdict: VerdictWord
    number: float | None
    meaning: str


@dataclass(frozen=True)
class LayerScores:
    """T by routed layer, and their mean; None where there are no images."""

    mean: float | None
    layers: dict[str, float | None]


@dataclass(frozen=True)
class DScores(LayerScores):
    mean_over_batches_of_100: float | None


@dataclass(frozen=True, kw_only=True)
class TScores(LayerScores):
    by_class: tuple[LayerScores, ...]


@dataclass(frozen=True, kw_only=True)
class DScoresByClass(DScores):
    by_class: tuple[DScores, ...]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What an evaluation found, less what the reproduction's records say elsewhere."""

    format: Literal[2]
    run: str = ""
    model: dict[str, Any] = field(default_factory=dict)
    weights: str = ""
    trained_steps: int | None = None
    data: DataOf
    class_names: tuple[str, ...]
    clean: Share
    attacks: tuple[AttackRow, ...]
    complete: bool
    checks: tuple[CheckRow, ...] = ()
    verdict: VerdictWord | None = None
    T: TScores | None
    D: DScoresByClass | None
    confusion: tuple[tuple[int, ...], ...]
    settings: dict[str, Any]
    machine: dict[str, Any]
    seconds: float

    def __post_init__(self) -> None:
        classes = len(self.class_names)
        if classes < 2 or [len(row) for row in self.confusion] != [classes] * classes:
            raise Misfit(f"confusion does not have a row and a column for each of {classes} classes")
        if self.clean.accuracy is None:
            raise Misfit("there is not one image in it")
        if self.T is not None and self.T.mean is None:
            raise Misfit("T has no mean")
        if any(count < 0 for row in self.confusion for count in row):
            raise Misfit("confusion counts fewer images than none")
        for scores in (self.T, self.D):
            if scores is not None and len(scores.by_class) != classes:
                raise Misfit(f"T and D are by class of {len(scores.by_class)} classes, and there are {classes}")
        if (self.T is None) != (self.D is None):
            raise Misfit("T and D go together, and one of them is missing")


@dataclass(frozen=True, kw_only=True)
class Results(Figures):
    """All of results.json."""

    worst: tuple[WorstRow, ...]
    sweep: tuple[AttackRow, ...]
    skipped: tuple[str, ...]
