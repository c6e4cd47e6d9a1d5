"""The command line: one short function a verb. Torch is imported inside the verbs, so that help is instant."""

import contextlib
import ctypes
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NoReturn, TextIO

import tyro

from gammacaps.audit.config import AuditConfig
from gammacaps.bench.config import BenchConfig
from gammacaps.distributed.launch import launch
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.explorer.config import ExploreConfig
from gammacaps.files import check_can_write
from gammacaps.imports import load_plugins
from gammacaps.names import VECTOR_PRESETS, shipped_names
from gammacaps.options import MOST, check_amount, check_seed, check_whole
from gammacaps.paper.config import Part, ReproduceConfig
from gammacaps.report.config import ReportConfig
from gammacaps.runs.train_config import TrainConfig, read_config_file

HERE = ("device", "accumulate", "recompute_encoder")  # how a machine trains a run, which another may do otherwise


@dataclass(frozen=True)
class Train:
    """Train a network into a run's folder, under attack or on clean images."""

    train: TrainConfig = field(default_factory=TrainConfig)
    out: Path | None = None
    """The run's folder; without it, one named by the options under runs/."""
    config: Path | None = None
    """A .json or .toml file of these options, or a run's config.json; options given beside it win."""
    resume: Path | None = None
    """Go on with this run instead, to the very weights of an unbroken one. --steps lengthens it, from where it is:
    that is another training than one of so many steps from the start."""
    overwrite: bool = False
    """Replace the run's folder if it exists; the old run is deleted when the new one starts."""
    trust: bool = False
    """Import the Dataset that --config or --resume names, which runs its code: for files of people you trust."""
    json: bool = False
    """Print the metrics as JSON lines on standard output."""
    given: tyro.conf.Suppress[tuple[str, ...]] = ()
    """Which of the options of training were given: beside --resume the others stay as the run has them."""


@dataclass(frozen=True)
class Evaluate:
    """Measure runs: accuracy clean and under attack, T and D, and whether to believe it; writes results.json."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The run's folder or a shipped network's name, or several, whose curves (--sweep) are drawn together."""
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    json: bool = False
    """Print results.json instead of a table."""


@dataclass(frozen=True)
class Audit:
    """Say which capsules are gamma-capsules, by the paper's definitions; writes audit.json."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The run's folder or a shipped network's name, or several to compare."""
    audit: AuditConfig = field(default_factory=AuditConfig)
    json: bool = False
    """Print audit.json instead of a table."""


@dataclass(frozen=True)
class Explain:
    """Write what the capsules mean as files: generated inputs, parse trees, maps, into RUN/explain."""

    run: tyro.conf.Positional[Path]
    """The run's folder, or a shipped network's name."""
    report: ReportConfig = field(default_factory=ReportConfig)


@dataclass(frozen=True)
class Report:
    """Write one page about a run, report.html, that shows all of it and needs nothing else."""

    run: tyro.conf.Positional[Path]
    """The run's folder, or a shipped network's name."""
    report: ReportConfig = field(default_factory=ReportConfig)


@dataclass(frozen=True)
class Explore:
    """Open a page to play with a network: draw, attack, click its capsules, or set two side by side."""

    runs: tyro.conf.Positional[tuple[str, ...]] = ()
    """A run's folder or a shipped network's name (see gammacaps --help); two side by side; or none: fashion-mini."""
    explore: ExploreConfig = field(default_factory=ExploreConfig)


@dataclass(frozen=True)
class Reproduce:
    """Make the paper's tables and figures, its numbers beside ours, and what it leaves out; docs/reproduction.md."""

    parts: tyro.conf.Positional[tuple[Part, ...]] = ("all",)
    """Which of them."""
    reproduce: ReproduceConfig = field(default_factory=ReproduceConfig)


@dataclass(frozen=True)
class Export:
    """Write a run's network as an .onnx file, or as a .pt2 program of torch.export, for other programs."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    out: Path
    """The file, ending in .onnx or .pt2."""


@dataclass(frozen=True)
class Data:
    """Say which data sets there are, or look into one (downloading it if need be)."""

    name: tyro.conf.Positional[str | None] = None
    """A data set's name, an .npz file, a folder of class folders, or a Dataset's import path."""
    store: Path | None = None
    """Write the set into this new folder, from which training reads it as it goes: for data larger than memory."""
    size: int | None = None
    """Side to resize the images to as they are stored."""
    data_dir: str | None = None
    """Folder in which the named data sets lie."""
    json: bool = False
    """Print JSON instead of a table."""

    def __post_init__(self) -> None:
        check_whole("size", self.size)


@dataclass(frozen=True)
class DataCheck:
    """Read all of a data set and say what must be mended before training (exit status 1) and what to know."""

    name: tyro.conf.Positional[str]
    """A folder of class folders, an .npz file, a Dataset's import path, or a data set's name."""
    size: int | None = None
    """Side to which training will resize the images."""
    data_dir: str | None = None
    """Folder in which the named data sets lie."""
    json: bool = False
    """Print JSON instead of words."""

    def __post_init__(self) -> None:
        check_whole("size", self.size)


@dataclass(frozen=True)
class Demo:
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
class Bench:
    """Time the engine against plain PyTorch, eager and compiled; a way that gives wrong answers is not timed."""

    bench: BenchConfig = field(default_factory=BenchConfig)
    out: Path | None = None
    """Append the rows to this CSV file."""
    json: bool = False
    """Print the rows as JSON instead of a table."""


def train(options: Train) -> None:
    from gammacaps.runs.run import refuse_import
    from gammacaps.training.train import Finished, resume, train

    if options.resume is not None:
        run = options.resume
        given = {name: getattr(options.train, name) for name in ("steps", "epochs", "minutes", "data_dir")}
        here = {name: getattr(options.train, name) for name in HERE}
        others = set(options.given) - {*given, *here}
        if others or options != Train(
            train=TrainConfig(**given, **here), resume=run, trust=options.trust, json=options.json, given=options.given
        ):
            raise InputError(
                "--resume goes on with the run's own options: give only --steps, --epochs, --minutes, --device, "
                "--data-dir, --accumulate, --recompute-encoder or --trust with it."
            )
        change = {name: here[name] for name in HERE if name in options.given}
        try:
            resume(run, as_json=options.json, trust=options.trust, **given, **change)
        except Finished as end:  # what was asked for is there
            if launch().rank == 0:
                print(end, file=sys.stderr)
    else:
        run = options.out or Path("runs") / default_name(options.train)
        if options.config is not None and "data" not in options.given:
            refuse_import(options.train.data, options.config, trust=options.trust)
        if launch().rank == 0 and (words := options.train.falls_short()):
            print(f"Note: {words}", file=sys.stderr)
        train(options.train, run, overwrite=options.overwrite, as_json=options.json)
    if options.json:
        show(json.dumps({"run": str(run)}))
    else:
        show(f"Saved in {run}. Measure it with: gammacaps evaluate {run}")


def default_name(config: TrainConfig) -> str:
    routing = f"-{config.routing}" if config.preset in VECTOR_PRESETS else ""
    kind = "robust" if config.robust else "standard"
    data = Path(config.data.rpartition(":")[2]).stem  # of a Dataset's import path the name alone
    return f"{data}-{config.preset}{routing}-{kind}-seed{config.seed}"


def evaluate(options: Evaluate) -> None:
    from gammacaps.distributed.processes import joined
    from gammacaps.evaluation.run import evaluate_run
    from gammacaps.evaluation.table import table
    from gammacaps.runs.run import Run, common_radius

    with joined() as processes:
        # The first process alone touches the runs' folders, which other machines need not see.
        files = ("results.json", *(["sweep.png"] if options.evaluate.sweep else []))
        runs = processes.first(lambda: _folders(options.runs, files, "evaluation"))
        config, results = options.evaluate, []
        if len(runs) > 1 and config.eps is None and config.attacks != ("paper",):
            config = replace(config, eps=(processes.first(lambda: common_radius([Run(run) for run in runs])),))
        for run in runs:
            results.append(evaluate_run(run, config, quiet=options.json, processes=processes))
            if not options.json:
                show(f"{table(results[-1])}\n\nWritten to {run / 'results.json'}")
        if options.json:
            show(json.dumps(results[0] if len(results) == 1 else results))
        if options.evaluate.sweep:
            from gammacaps.evaluation.curve import draw_curves

            path = runs[0] / "sweep.png"
            processes.first(lambda: draw_curves(results, path))
            if not options.json:
                show(f"The curve of accuracy over eps: {path}")


def audit(options: Audit) -> None:
    from gammacaps.audit.run import audit_run
    from gammacaps.audit.table import compare, table
    from gammacaps.runs.run import Run, common_radius

    runs = _folders(options.runs, ("audit.json", "audit-eps.png", "audit-tau.png"))
    config, results = options.audit, []
    if len(runs) > 1 and not config.eps:
        eps = common_radius([Run(run) for run in runs])
        config = replace(config, eps=(eps / 2, eps))
    for run in runs:
        results.append(audit_run(run, config, quiet=options.json))
        if not options.json:
            show(f"{table(results[-1])}\n\nWritten to {run / 'audit.json'}")
    if options.json:
        show(json.dumps(results[0] if len(results) == 1 else results))
    elif len(results) > 1:
        show(f"\n{compare(results)}")


def explain(options: Explain) -> None:
    from gammacaps.report.run import explain_run

    (run,) = _folders((options.run,), folder="explain")
    show(f"Pictures and figures: {explain_run(run, options.report)}")


def report(options: Report) -> None:
    from gammacaps.report.run import report_run

    (run,) = _folders((options.run,), ("report.html",))
    show(f"Open in a browser: {report_run(run, options.report)}")


def explore(options: Explore) -> None:
    from gammacaps.explorer.run import explore

    explore(options.runs, options.explore)


def reproduce(options: Reproduce) -> None:
    from gammacaps.paper.run import reproduce as make

    make(options.parts or ("all",), options.reproduce)


def export(options: Export) -> None:
    from gammacaps.models import export, load

    export(load(options.run), options.out)
    show(f"Images to scores, for any batch: {options.out}")


def _folders(runs: tuple[Path, ...], files: Sequence[str] = (), folder: str | None = None) -> tuple[Path, ...]:
    """Runs' folders, shipped networks being copied to theirs, if `files` and a `folder` can be written there."""
    from gammacaps.models.shipped import run_folder

    if not runs:
        raise InputError("Name the run's folder, such as runs/mine.")
    found = tuple(run_folder(run) for run in runs)
    for run in found:
        check_can_write(run, files, folder)
    return found


def data(options: Data) -> None:
    from gammacaps.data.describe import describe, overview

    if options.store is not None:
        store_data(options)
        return
    facts, words = overview(options.data_dir) if options.name is None else describe(options.name, options.data_dir)
    show(json.dumps(facts) if options.json else words)


def data_check(options: DataCheck) -> None:
    from gammacaps.data.describe import checked
    from gammacaps.data.examine import examine

    found = examine(options.name, size=options.size, data_dir=options.data_dir)
    facts, words = checked(found, options.size)
    show(json.dumps(facts) if options.json else words)
    if found.problems:
        sys.exit(1)


def store_data(options: Data) -> None:
    from gammacaps.data.storing import store_set

    if options.name is None:
        raise InputError("Name the data set that is to be stored, such as: gammacaps data photos --store photos-stored")
    counts = store_set(options.name, options.store or "", data_dir=options.data_dir, size=options.size)
    if options.json:
        show(json.dumps({"folder": str(options.store), "images": counts}))
    else:
        show(f"Stored {counts['train']:,} training and {counts['test']:,} test images in {options.store}.")
        show(f"Train on them with: gammacaps train --data {options.store}")


def demo(options: Demo) -> None:
    from gammacaps.demo import run_demo

    run_demo(options.out, minutes=options.minutes, seed=options.seed)


def bench(options: Bench) -> None:
    from gammacaps.bench.run import run_bench
    from gammacaps.bench.table import table

    rows, failed = run_bench(options.bench, options.out)
    show(json.dumps(rows) if options.json else table(rows))
    if failed:
        sys.exit(1)


VERBS: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
    "train": (Train, train),
    "evaluate": (Evaluate, evaluate),
    "audit": (Audit, audit),
    "explain": (Explain, explain),
    "report": (Report, report),
    "explore": (Explore, explore),
    "reproduce": (Reproduce, reproduce),
    "export": (Export, export),
    "data": (Data, data),
    "data check": (DataCheck, data_check),
    "demo": (Demo, demo),
    "bench": (Bench, bench),
}

TOGETHER = ("train", "evaluate")  # what several processes that torchrun starts can do as one


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a verb; what a user did wrong is one sentence and exit status 2, an interruption is 130."""
    open_streams()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    here = launch()

    def stop(words: object, status: int) -> NoReturn:
        if here.place == 0:  # one sentence a machine
            with contextlib.suppress(OSError):
                print(f"gammacaps: {words}", file=sys.stderr)
        sys.exit(status)

    try:
        # The first process speaks for all.
        with nowhere() as dropped, contextlib.redirect_stdout(dropped if here.rank > 0 else sys.stdout):
            run(arguments)
            with printed():
                pass
    except InputError as error:
        stop(error, 2)
    except BrokenPipeError:  # not of what a verb shows at its end, so that there was more to do
        stop("Stopped, since nobody reads what is printed any more.", 130)
    except KeyboardInterrupt as asked:
        stop(str(asked) or "Interrupted.", 130)
    except OSError as error:
        if error.filename is None:
            raise
        stop(f"{error.filename} can't be used ({error.strerror}): check the path, its rights and the disk.", 2)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        stop("The memory is not enough for this: use fewer or smaller images, a smaller --batch or network.", 2)
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                lead_nowhere(stream)


# As torch says it, on a CPU and on a GPU.
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


def open_streams() -> None:
    """Opens standard streams that were closed, or the next files opened would take their place and all that is printed.

    What no encoding can say, such as parts of a file's name, is printed as an escape instead of not at all.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free, which is this one
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, nowhere())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def show(words: str) -> None:
    """Prints what was found."""
    with printed():
        print(words)


@contextlib.contextmanager
def printed() -> Iterator[None]:
    """Brings what is printed to its reader; one who has seen enough, such as `head`, does not end the work."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        lead_nowhere(sys.stdout)
    except OSError as error:
        lead_nowhere(sys.stdout)
        raise InputError(f"The output can't be written ({error.strerror}): send it to another place.") from None


def lead_nowhere(stream: TextIO) -> None:
    """What was not written yet, and all that comes, is dropped; else Python would complain about it once more."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        show(overview())
        return
    if arguments[0] == "--version":
        import gammacaps

        show(f"gammacaps {gammacaps.__version__}")
        return
    verb, *rest = arguments
    if rest and f"{verb} {rest[0]}" in VERBS:
        verb, rest = f"{verb} {rest[0]}", rest[1:]
    if verb not in VERBS:
        raise InputError(f"There is no command '{verb}': use one of {', '.join(VERBS)}, or see gammacaps --help.")
    if launch().count > 1 and verb not in TOGETHER:
        raise InputError(f"gammacaps {verb} runs in one process: start it without torchrun.")
    if not {"-h", "--help"} & set(rest):
        load_plugins()
    kind, function = VERBS[verb]
    path = config_file(verb, rest)
    with nowhere() as dropped, contextlib.redirect_stderr(dropped if launch().place > 0 else sys.stderr):
        try:
            options: Any = tyro.cli(
                kind,
                prog=f"gammacaps {verb}",
                args=rest,
                default=Train(train=read_config_file(path)) if path else tyro.MISSING_NONPROP,
                config=(tyro.conf.OmitArgPrefixes,),
            )
        except BrokenPipeError:  # of help, or of what is wrong
            sys.exit(0 if {"-h", "--help"} & set(rest) else 2)
    if isinstance(options, Train):
        flags = [argument.partition("=")[0] for argument in rest if argument.startswith("--")]
        words = {flag.replace("-", "_").removeprefix("__") for flag in flags}
        names = (one.name for one in fields(TrainConfig))
        options = replace(options, given=tuple(name for name in names if {name, f"no_{name}"} & words))
    try:
        Path.cwd()
    except OSError:
        raise InputError("The folder that gammacaps was started in is gone: change to another one.") from None
    reuse_memory()
    function(options)


def nowhere() -> TextIO:
    """A file that keeps nothing."""
    return Path(os.devnull).open("w")


def overview() -> str:
    lines = ["gammacaps: capsule networks that are robust to attack and that people can look inside", ""]
    lines += [f"  gammacaps {verb:<12}{kind.__doc__}" for verb, (kind, _) in VERBS.items()]
    names = ", ".join(shipped_names())
    lines += ["", f"Networks that come with gammacaps, for where a command takes a run: {names}."]
    return "\n".join([*lines, "gammacaps VERB --help shows a command's options."])


def config_file(verb: str, arguments: list[str]) -> Path | None:
    """The file that `train --config` names, read before the other options so that these win over it."""
    if verb != "train":
        return None
    for place, argument in enumerate(arguments):
        if argument == "--config" and place + 1 < len(arguments):
            return Path(arguments[place + 1])
        if argument.startswith("--config="):
            return Path(argument.partition("=")[2])
    return None


def reuse_memory() -> None:
    """Keeps freed memory in the process: given back and fetched again at each step, it costs half of a CPU's time."""
    with contextlib.suppress(OSError, AttributeError):  # only the C library of GNU/Linux has this
        libc = ctypes.CDLL("libc.so.6")
        m_trim_threshold, m_mmap_threshold = -1, -3
        libc.mallopt(m_mmap_threshold, 1 << 30)
        libc.mallopt(m_trim_threshold, (1 << 31) - 1)


if __name__ == "__main__":
    main()
