"""What is kept of a run: a small JSON file of figures and a small .npz of arrays, from which every table is made."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gammacaps.attacks.table import attack_names
from gammacaps.data.archive import open_arrays
from gammacaps.errors import InputError
from gammacaps.evaluation.by_image import WORST, Right, bit_name, unpacked
from gammacaps.files import read_json, write_whole
from gammacaps.runs.results import AttackRow, CheckRow, Figures, WorstRow
from gammacaps.runs.typed_json import Misfit, read_as

FORMAT = 2
AUTHORS, SUITE_BITS = "authors-", "suite-"  # how the names of bits begin: of the authors' loss, of the strong attacks
FACTS = "facts.json"  # beside the runs' files: what hangs on no run


@dataclass(frozen=True, kw_only=True)
class WorstOfSuite(WorstRow):
    """A worst case with the attacks that ran, those that were asked for, and how many images of each class."""

    attacks: tuple[str, ...]
    classes: tuple[int, ...]
    suite: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordFile:
    """All of a run's JSON file."""

    format: Literal[2]
    name: str
    data: str
    rule: str
    kind: str
    quick: bool
    steps: int
    total: int
    seed: int
    train: dict[str, Any]
    model: dict[str, Any] = field(default_factory=dict)
    train_seconds: float
    machine: dict[str, Any]
    commit: str | None
    measure_seconds: float
    results: Figures
    worst: tuple[WorstOfSuite, ...]
    checks: tuple[CheckRow, ...]
    skipped: tuple[str, ...] = ()
    authors: tuple[AttackRow, ...] = ()
    tenth: tuple[AttackRow, ...] = ()
    filters: dict[str, Any] = field(default_factory=dict)
    nothing: dict[str, Any] = field(default_factory=dict)
    map: dict[str, Any] = field(default_factory=dict)
    generated: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Record:
    """A run as it was measured at one step."""

    figures: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    earlier: tuple["Record", ...] = ()  # the same run at earlier steps, those first

    @property
    def name(self) -> str:
        return str(self.figures["name"])

    @property
    def steps(self) -> int:
        return int(self.figures["steps"])

    @property
    def classes(self) -> list[int]:
        """How many images of each class it was measured on; the strong attacks say their own."""
        return [sum(row) for row in self.figures["results"]["confusion"]]

    def accuracy(self, attack: str, eps: float) -> dict[str, Any] | None:
        """The row of an attack of the paper's at a radius, or at a tenth of one where those were measured."""
        rows = [*self.figures["results"]["attacks"], *self.figures.get("tenth", ())]
        return next((row for row in rows if row["attack"] == attack and row["eps"] == eps), None)

    def by_authors(self, eps: float) -> dict[str, Any] | None:
        """The row of PGD on the loss of the authors' code, where that was measured."""
        return next((row for row in self.figures.get("authors", ()) if row["eps"] == eps), None)

    def worst(self, eps: float) -> dict[str, Any] | None:
        """The row of the worst case over the suite at a radius."""
        return next((row for row in self.figures["worst"] if row["eps"] == eps), None)

    def suite(self, eps: float) -> set[str]:
        """The attacks that were asked for in the worst case at a radius; none where there is no worst case."""
        row = self.worst(eps) or {"attacks": ()}
        return {name for name in row.get("suite", row["attacks"]) if name in attack_names()}

    @property
    def has_bits(self) -> bool:
        """Whether it tells image by image what was right; records of older versions do not."""
        return self.bits("clean") is not None

    def bits(self, attack: str, eps: float | None = None, *, prefix: str = "") -> Right | None:
        """Which images were right, clean, under an attack, or in the worst case over the suite."""
        prefix = SUITE_BITS if attack == WORST else prefix
        return unpacked(self.arrays, bit_name(attack, eps, prefix=prefix))

    def line(self) -> str:
        """Its figures in short: accuracies clean, under PGD and in the worst case; T and D where it has capsules."""
        results = self.figures["results"]
        parts = [f"clean {results['clean']['accuracy']:.1%} of {results['clean']['images']:,}"]
        for title, rows in (
            ("PGD", [row for row in results["attacks"] if row["attack"] == "pgd"]),
            ("worst case", self.figures["worst"]),
        ):
            shares = [f"{row['accuracy']:.1%} at eps {row['eps']:g}" for row in rows if row["accuracy"] is not None]
            parts += [f"{title} {', '.join(shares)}"] if shares else []
        parts += [f"{score} {results[score]['mean']:.2f}" for score in ("T", "D") if results.get(score)]
        return f"{self.name}, {self.steps:,} steps: {'; '.join(parts)}"


def path_of(folder: Path, name: str, steps: int | None = None) -> Path:
    """The file of a run's end, or of an earlier step of it."""
    return folder / (f"{name}.json" if steps is None else f"{name}.at-{steps}.json")


def write_record(path: Path, figures: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Arrays first: a run is finished once its JSON file is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # its keywords are arrays
    write_whole(path.with_suffix(".npz"), buffer.getvalue())
    text = json.dumps({**figures, "format": FORMAT}, allow_nan=False)
    write_whole(path, (text + "\n").encode())


def read_record(path: Path) -> Record:
    figures = read_json(path)
    try:
        read_as(RecordFile, figures)
    except Misfit as error:
        raise InputError(
            f"{path} holds no figures of a run that this version knows ({error}): delete it, and it is made anew."
        ) from None
    beside = path.with_suffix(".npz")
    try:
        with open_arrays(beside) as arrays:
            return Record(figures, {name: arrays.read(name) for name in arrays})
    except InputError:
        raise InputError(
            f"{beside} is missing or broken: delete {path.name} beside it, and both are made anew."
        ) from None


def read_records(folder: Path) -> dict[str, Record]:
    """All finished runs of a results folder by name, each with its earlier steps."""
    earlier: dict[str, list[Record]] = {}
    for path in sorted(folder.glob("*.at-*.json")):
        record = read_record(path)
        earlier.setdefault(record.name, []).append(record)
    records = {}
    for path in sorted(folder.glob("*.json")):
        if ".at-" not in path.name and path.name != FACTS:
            last = read_record(path)
            before = [r for r in earlier.get(last.name, ()) if r.figures["total"] == last.figures["total"]]
            records[last.name] = Record(last.figures, last.arrays, tuple(sorted(before, key=lambda r: r.steps)))
    return records
