"""Does what a reproduction needs: trains the runs that are missing, measures them, and writes the page."""

import contextlib
import dataclasses
import fcntl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gammacaps.environment import describe_machine, pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.identity import identity
from gammacaps.files import check_can_write, writing
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.cost import cost_table, dealt
from gammacaps.paper.facts import make_facts
from gammacaps.paper.measure import attack_strongly, measure, suite_of
from gammacaps.paper.page import write_page
from gammacaps.paper.plan import Planned, chosen, plan, same_training
from gammacaps.paper.record import FACTS, Record, path_of, read_record, write_record
from gammacaps.program import command
from gammacaps.progress import say
from gammacaps.runs.metrics import read_metrics
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import config_from
from gammacaps.training.checkpoint import step_of
from gammacaps.training.train import resume, train

LEG = 2500  # steps between looks at a training that ends by what it learns


def reproduce(parts: tuple[str, ...], options: ReproduceConfig) -> None:
    """Makes the runs that the parts need, each once, and then the page; says on standard error what it is at."""
    runs = dealt(chosen(options, parts), *options.part_of_work())
    if options.dry_run:
        print(cost_table(runs, {run.name for run in runs if finished(run, options)}, quick=options.quick))
        return
    pick_device(options.device)
    for folder in (options.results_folder, options.work_folder) if not options.page else ():
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        check_can_write(folder)
    for place, waiting in enumerate(runs, start=1) if not options.page else ():
        planned = plan(options)[waiting.name] if waiting.needs else waiting  # by now it may be known how
        if planned.needs:
            say(f"{place}/{len(runs)} {planned.name}: waits for {', '.join(_missing(planned, options))}.")
            continue
        if finished(planned, options):
            say(f"{place}/{len(runs)} {planned.name}: done before.")
            continue
        with _claimed(options.work_folder / f"{planned.name}.lock") as mine:
            if not mine:
                say(f"{place}/{len(runs)} {planned.name}: left to the process that is at it.")
                continue
            say(f"{place}/{len(runs)} {planned.name}: {planned.config.steps:,} steps")
            try:
                make(planned, options)
            except KeyboardInterrupt:
                words = f"Stopped at {planned.name}. What was made is kept: the same command goes on from there."
                raise KeyboardInterrupt(words) from None
    if options.page and not any(path.name != FACTS for path in options.results_folder.glob("*.json")):
        raise InputError(f"There are no figures in {options.results_folder} yet: make some with gammacaps reproduce.")
    if options.page or not (options.runs or options.share):
        make_facts(options)
        written = write_page(options.results_folder, quick=options.quick)
        print(f"Written to {', '.join(map(str, written))}.")
    else:
        for planned in runs:
            if finished(planned, options):
                print(read_record(path_of(options.results_folder, planned.name)).line())
        where = f" --results {options.results}" if options.results else ""
        print(f"Make the page of all figures with: {command('reproduce --page')}{' --quick' * options.quick}{where}")


def make(planned: Planned, options: ReproduceConfig) -> None:
    """Trains a run to each of its moments and measures it there; what is there already is not done again.

    What is measured is written at once, the strong attacks radius by radius: a machine may go at any time. A run
    whose end is measured as planned is never trained again, not for a moment before it either: its weights would be
    lost.
    """
    folder = options.work_folder / planned.name
    ended = measured(planned, options, planned.moments[-1])
    left = [] if ended else [moment for moment in planned.moments if not measured(planned, options, moment)]
    behind = folder.exists() and (not _same(folder, planned) or (bool(left) and step_of(folder) > left[0]))
    for moment in left:
        advance(planned, folder, moment, options, overwrite=behind)
        behind = False
        moment = step_of(folder)  # which may be earlier, where there was no more to learn
        started = time.monotonic()
        figures, arrays = measure(folder, planned, options)
        about = {**_about(planned, options, folder, moment), "measure_seconds": round(time.monotonic() - started, 1)}
        at = moment if moment in planned.moments else planned.moments[-1]
        write_record(_path(planned, options, at), {**about, **figures}, arrays)
    path = _path(planned, options, planned.moments[-1])
    for eps, images in unattacked(planned, options):
        record, started = read_record(path), time.monotonic()
        suite = (*suite_of(options), *sorted(record.suite(eps)))  # what was tried before stays in the worst case
        more, bits = attack_strongly(folder, planned, dataclasses.replace(options, suite=suite), eps, images)
        figures = dict(record.figures)
        figures["worst"] = [*(row for row in figures["worst"] if row["eps"] != eps), *more["worst"]]
        figures["checks"] = more["checks"] or figures["checks"]
        figures["skipped"] = more["skipped"]
        figures["measure_seconds"] += round(time.monotonic() - started, 1)
        write_record(path, figures, {**record.arrays, **bits})


def advance(planned: Planned, folder: Path, moment: int, options: ReproduceConfig, *, overwrite: bool) -> None:
    """Trains up to a step, from the start or from where an earlier process stopped.

    One that ends by what it learns is looked at leg by leg, on images held back from training.
    """
    if overwrite or not folder.exists():
        train(planned.config, folder, overwrite=overwrite, until=_next_look(planned, 0, moment))
    while (step := step_of(folder)) < moment and not learned_all(planned, folder):
        resume(folder, until=_next_look(planned, step, moment), device=options.device, data_dir=options.data_dir)


def _next_look(planned: Planned, step: int, moment: int) -> int:
    """The step at which it is next seen whether a training has ended; without a plateau, its moment itself."""
    if planned.plateau is None:
        return moment
    return min(moment, max(planned.plateau.least, step - step % LEG + LEG))


def learned_all(planned: Planned, folder: Path) -> bool:
    """Whether a training has ended by what it learns: its held-back images have long not been better."""
    if planned.plateau is None:
        return False
    step, best, best_step = step_of(folder), -1.0, 0
    for row in read_metrics(folder):
        if row["step"] <= step and row.get("validation", -1.0) > best:
            best, best_step = row["validation"], row["step"]
    return planned.plateau.reached(step, best_step)


def finished(planned: Planned, options: ReproduceConfig) -> bool:
    """Whether a run's figures are there.

    They must be of a training as long as planned, told image by image; where the weights that were measured are still
    there, the strong attacks must be done too. Without them they could be made up for only by training again.
    """
    path = path_of(options.results_folder, planned.name)
    if not path.exists():
        return False
    record = read_record(path)
    if not measured(planned, options, planned.moments[-1]) or not _long_enough(record, planned):
        return False
    return not unattacked(planned, options)


def unattacked(planned: Planned, options: ReproduceConfig) -> list[tuple[float, int | None]]:
    """The radii, and the numbers of images, of the strong attacks that a finished run lacks and that can be made up."""
    if not measured(planned, options, planned.moments[-1]):
        return []
    record = read_record(_path(planned, options, planned.moments[-1]))
    suite = set(EvaluateConfig(attacks=suite_of(options)).named_attacks())
    left = [(eps, images) for eps, images in planned.worst if not suite <= record.suite(eps)]
    return left if left and _measured_on(record, options.work_folder / planned.name, planned) else []


def measured(planned: Planned, options: ReproduceConfig, moment: int) -> bool:
    """Whether the figures of a step of this very training are there."""
    path = _path(planned, options, moment)
    if not path.exists():
        return False
    record = read_record(path)
    return _tells(record, planned) and record.has_bits and bool(record.figures["total"] == planned.moments[-1])


def _long_enough(record: Record, planned: Planned) -> bool:
    """Whether it was trained to its end, which may be where it learned no more."""
    return record.steps >= planned.moments[-1] or (
        planned.plateau is not None and record.steps >= planned.plateau.least
    )


def _missing(planned: Planned, options: ReproduceConfig) -> list[str]:
    """The runs that must be measured before a run can be planned, and are not."""
    return [name for name in planned.needs if not path_of(options.results_folder, name).exists()]


def _tells(record: Record, planned: Planned) -> bool:
    """Whether a record is of the training that is planned, whatever its length, with all radii of the tables."""
    trained = config_from({"data_dir": None, **record.figures["train"]})
    same = same_training(dataclasses.replace(trained, steps=planned.config.steps), planned.config)
    return same and all(record.accuracy("pgd", eps) is not None for eps in planned.radii)


def _path(planned: Planned, options: ReproduceConfig, moment: int) -> Path:
    return path_of(options.results_folder, planned.name, None if moment == planned.moments[-1] else moment)


def _same(folder: Path, planned: Planned) -> bool:
    try:
        trained = Run(folder).config.train
    except InputError:
        return False
    return trained is not None and same_training(trained, planned.config)


def _measured_on(record: Record, folder: Path, planned: Planned) -> bool:
    """Whether a folder holds the very weights of a record: not half-trained ones, nor another machine's."""
    if not _same(folder, planned) or step_of(folder) != record.steps:
        return False
    try:
        return identity(Run(folder).model()) == record.figures["results"]["weights"]
    except InputError:  # broken, or gone
        return False


def _about(planned: Planned, options: ReproduceConfig, folder: Path, moment: int) -> dict[str, Any]:
    """What identifies a run's figures: how it was trained, for how long, where, with which version."""
    run = Run(folder)
    return {
        "name": planned.name,
        "data": planned.data,
        "rule": planned.rule,
        "kind": planned.kind,
        "quick": options.quick,
        "steps": moment,
        "total": planned.moments[-1],
        "seed": planned.config.seed,
        "train": {name: value for name, value in run.stored["train"].items() if name != "data_dir"},
        "model": run.config.model,
        "train_seconds": (run.last_metrics() or {"seconds": 0.0})["seconds"],
        "machine": describe_machine(options.device),
        "commit": commit(),
    }


def commit() -> str | None:
    """The version of the code, where it is a git work tree; "-dirty" where it was changed since."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() or None
    return None


@contextlib.contextmanager
def _claimed(path: Path) -> Iterator[bool]:
    """Whether this process alone is at a run; the claim ends with the process, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
