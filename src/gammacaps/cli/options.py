"""What each verb is told, as one dataclass a verb: its docstring and its fields' are the help. Free of torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from gammacaps.auditing.config import AuditConfig
from gammacaps.bench.config import BenchConfig
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.explorer.config import ExploreConfig
from gammacaps.options import MOST, check_amount, check_seed, check_whole
from gammacaps.paper.config import PaperPart, ReproduceConfig
from gammacaps.reporting.config import ReportConfig
from gammacaps.runs.train_config import TrainConfig
from gammacaps.start.config import StartConfig

LENGTHS = ("steps", "epochs", "minutes", "data_dir")  # what a run that goes on may be given anew, to be kept
HERE = ("device", "accumulate", "recompute_encoder")  # how a machine trains a run, which another may do otherwise


@dataclass(frozen=True)
class TrainOptions:
    """Train a network into a run's folder, under attack or on clean images."""

    train: TrainConfig = field(default_factory=TrainConfig)
    out: Path | None = None
    """The run's folder; without it, one named by the options under runs/."""
    config: Path | None = None
    """A .json or .toml file of these options, or a run's config.json; options on the command line override it."""
    resume: Path | None = None
    """Continue this run instead, to exactly the weights of an unbroken one. --steps makes it longer from where it is,
    which is not the same training as one of that many steps from the start."""
    overwrite: bool = False
    """Replace the run's folder if it exists; the old run is deleted when the new one starts."""
    trust: bool = False
    """Import the Dataset that --config or --resume names, which runs its code: for files of people you trust."""
    json: bool = False
    """Print the metrics as JSON lines on standard output."""
    given: tyro.conf.Suppress[tuple[str, ...]] = ()
    """Which of the options of training were given: beside --resume the others stay as the run has them."""

    def changes(self) -> dict[str, Any]:
        """What --resume changes of the run; refuses options that it can't."""
        lengths = {name: getattr(self.train, name) for name in LENGTHS}
        here = {name: getattr(self.train, name) for name in HERE}
        allowed = TrainOptions(
            train=TrainConfig(**lengths, **here),
            resume=self.resume,
            trust=self.trust,
            json=self.json,
            given=self.given,
        )
        if self != allowed or set(self.given) - {*lengths, *here}:
            raise InputError(
                "--resume goes on with the run's own options: give only --steps, --epochs, --minutes, --device, "
                "--data-dir, --accumulate, --recompute-encoder or --trust with it."
            )
        return {**lengths, **{name: here[name] for name in HERE if name in self.given}}


@dataclass(frozen=True)
class EvaluateOptions:
    """Measure runs: accuracy clean and under attack, T and D, and whether to believe it; writes results.json."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The run's folder or a shipped network's name, or several, whose curves (--sweep) are drawn together."""
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    json: bool = False
    """Print results.json instead of a table."""


@dataclass(frozen=True)
class AuditOptions:
    """Say which capsules are gamma-capsules, by the paper's definitions; writes audit.json."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The run's folder or a shipped network's name, or several to compare."""
    audit: AuditConfig = field(default_factory=AuditConfig)
    json: bool = False
    """Print audit.json instead of a table."""


@dataclass(frozen=True)
class ExplainOptions:
    """Write what the capsules mean as files: generated inputs, parse trees, maps, into RUN/explain."""

    run: tyro.conf.Positional[Path]
    """The run's folder, or a shipped network's name."""
    report: ReportConfig = field(default_factory=ReportConfig)


@dataclass(frozen=True)
class ReportOptions:
    """Write one page about a run, report.html, that shows all of it and needs nothing else; or about two runs,
    side-by-side.html in the first one's folder."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The run's folder, or a shipped network's name; or two, side by side."""
    report: ReportConfig = field(default_factory=ReportConfig)


@dataclass(frozen=True)
class ExploreOptions:
    """Open a page to play with a network: draw, attack, click its capsules, or set two side by side."""

    runs: tyro.conf.Positional[tuple[str, ...]] = ()
    """A run's folder or a shipped network's name (see gammacaps --help); two side by side; or none: fashion-mini."""
    explore: ExploreConfig = field(default_factory=ExploreConfig)


@dataclass(frozen=True)
class ReproduceOptions:
    """Make the paper's tables and figures, its numbers beside ours, and what it leaves out; docs/reproduction.md."""

    parts: tyro.conf.Positional[tuple[PaperPart, ...]] = ("all",)
    """Which of them."""
    reproduce: ReproduceConfig = field(default_factory=ReproduceConfig)


@dataclass(frozen=True)
class ExportOptions:
    """Write a run's network as an .onnx file, or as a .pt2 program of torch.export, for other programs."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    out: Path
    """The file, ending in .onnx or .pt2."""


@dataclass(frozen=True)
class DataOptions:
    """Say which data sets there are, or look into one (downloading it if need be)."""

    name: tyro.conf.Positional[str | None] = None
    """A data set's name, an .npz file, a folder of class folders, or a Dataset's import path."""
    store: Path | None = None
    """Write the set into this new folder, from which training reads it as it goes: for data larger than memory."""
    size: int | None = None
    """Side to resize the images to as they are stored."""
    skip_unreadable: bool = False
    """Of a folder of pictures: leave out files that can't be read, and list them, instead of an error."""
    data_dir: str | None = None
    """Folder that holds the named data sets."""
    json: bool = False
    """Print JSON instead of a table."""

    def __post_init__(self) -> None:
        check_whole("size", self.size)


@dataclass(frozen=True)
class DataCheckOptions:
    """Read all of a data set and say what must be fixed before training (exit status 1) and what to know."""

    name: tyro.conf.Positional[str]
    """A folder of class folders, an .npz file, a Dataset's import path, or a data set's name."""
    size: int | None = None
    """Side to which training will resize the images."""
    data_dir: str | None = None
    """Folder that holds the named data sets."""
    json: bool = False
    """Print JSON instead of words."""

    def __post_init__(self) -> None:
        check_whole("size", self.size)


@dataclass(frozen=True)
class DemoOptions:
    """Train a small network under attack and one without, and show side by side what they are worth."""

    out: Path = Path("runs/demo")
    """Folder for the two runs and the picture; a demo that is there is replaced."""
    minutes: float = 1.25
    """Length of the training under attack; the other network gets as many steps."""
    seed: int = 0
    """Seed of both trainings."""

    def __post_init__(self) -> None:
        check_amount("minutes", self.minutes, zero=False, most=MOST)
        check_seed(self.seed)


@dataclass(frozen=True)
class StartOptions:
    """From a folder of pictures to two networks and a page: checks them, chooses, trains, measures, compares."""

    folder: tyro.conf.Positional[Path]
    """The pictures, with a sub-folder for each class; they are only read."""
    start: StartConfig = field(default_factory=StartConfig)
    out: Path | None = None
    """Folder for all that is made; without it runs/FOLDER-start. If it was interrupted, the same command goes on."""
    open: bool = False
    """Open the page in a browser."""


@dataclass(frozen=True)
class BenchOptions:
    """Time the engine against plain PyTorch, eager and on a GPU compiled; a way that is wrong is not timed."""

    bench: BenchConfig = field(default_factory=BenchConfig)
    out: Path | None = None
    """Append the rows to this CSV file."""
    json: bool = False
    """Print the rows as JSON instead of a table."""
