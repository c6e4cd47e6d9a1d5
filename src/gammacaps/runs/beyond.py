"""beyond.json: what a network withstands beyond its ball. `evaluate --beyond` writes it, and here stands what fits."""

from dataclasses import dataclass
from typing import Any, Literal

from gammacaps.runs.results import AttackRow, DataOf, Share, WorstRow
from gammacaps.runs.typed_json import Misfit

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class NormRow(WorstRow):
    """The worst case in one norm, and the attacks it is over."""

    norm: Literal["linf", "l2", "l1"]
    attacks: tuple[AttackRow, ...]


@dataclass(frozen=True, kw_only=True)
class SpatialRow(Share):
    """The images that are right wherever they are put."""

    grid: dict[str, float]
    complete: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if "placements" not in self.grid:
            raise Misfit("spatial.grid does not say how many placements it has")


@dataclass(frozen=True)
class TurnedRow:
    """Accuracy where all images are turned by one angle, to either side."""

    angle: float
    right: Share
    left: Share


@dataclass(frozen=True, kw_only=True)
class CorruptionRow(Share):
    kind: str


@dataclass(frozen=True)
class Corruptions:
    mean: float | None
    kinds: tuple[CorruptionRow, ...]


@dataclass(frozen=True)
class Told:
    """How well unseen things are told from test images."""

    auroc: float
    false_alarms: float


@dataclass(frozen=True, kw_only=True)
class ToldAttacked(Told):
    attacked: Told


@dataclass(frozen=True)
class UnseenRow:
    """Images of one source, by the longest class capsule and by the pattern of the hidden ones."""

    source: str
    eps: float
    images: int
    length: ToldAttacked
    pattern: ToldAttacked | None


@dataclass(frozen=True)
class BinRow:
    low: float
    high: float
    images: int
    sure: float | None
    right: float | None


@dataclass(frozen=True)
class AnsweredRow:
    share: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    error: float
    bins: tuple[BinRow, ...]
    answered: tuple[AnsweredRow, ...]

    def __post_init__(self) -> None:
        if len(self.answered) < 2 or not any(one.images for one in self.bins):
            raise Misfit("calibration has no images")


@dataclass(frozen=True, kw_only=True)
class Beyond:
    """All of beyond.json."""

    format: Literal[1]
    run: str
    weights: str
    trained_steps: int | None
    data: DataOf
    class_names: tuple[str, ...]
    clean: Share
    norms: tuple[NormRow, ...]
    spatial: SpatialRow
    turned: tuple[TurnedRow, ...] | None
    corruptions: Corruptions
    unseen: tuple[UnseenRow, ...]
    calibration: Calibration
    notes: tuple[str, ...]
    complete: bool
    settings: dict[str, Any]
    machine: dict[str, Any]
    seconds: float
