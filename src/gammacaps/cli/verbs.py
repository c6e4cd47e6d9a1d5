"""One short function a verb, and their table. What a verb does is imported inside of it, so that help is instant."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gammacaps.cli.options import (
    AuditOptions,
    BenchOptions,
    DataCheckOptions,
    DataOptions,
    DemoOptions,
    EvaluateOptions,
    ExplainOptions,
    ExploreOptions,
    ExportOptions,
    ReportOptions,
    ReproduceOptions,
    StartOptions,
    TrainOptions,
)
from gammacaps.cli.streams import show
from gammacaps.distributed.launch import launch
from gammacaps.errors import InputError
from gammacaps.program import command


def start(options: StartOptions) -> None:
    from gammacaps.start.run import start

    show(start(options.folder, options.start, options.out, show=options.open))


def train(options: TrainOptions) -> None:
    from gammacaps.runs.run import refuse_import
    from gammacaps.training import train as training
    from gammacaps.training.checkpoint import best_of

    if options.resume is not None:
        run = options.resume
        try:
            training.resume(run, as_json=options.json, trust=options.trust, **options.changes())
        except training.Finished as end:  # what was asked for is there
            note(str(end))
    else:
        run = options.out or Path("runs") / options.train.run_name()
        if options.config is not None and "data" not in options.given:
            refuse_import(options.train.data, options.config, trust=options.trust)
        if warning := options.train.falls_short():
            note(f"Note: {warning}")
        training.train(options.train, run, overwrite=options.overwrite, as_json=options.json)
    kept = best_of(run)
    if options.json:
        best = {} if kept is None else {"kept_step": kept[0], "validation": kept[1]}
        show(json.dumps({"run": str(run), **best}))
        return
    if kept is not None:
        show(f"Kept the weights of step {kept[0]}, with which {100 * kept[1]:.1f}% of the held-back images are right.")
    show(f"Saved in {run}. Measure it with: {command(f'evaluate {shlex.quote(str(run))}')}")


def evaluate(options: EvaluateOptions) -> None:
    if options.evaluate.beyond:
        beyond(options)
        return
    from gammacaps.distributed.processes import joined
    from gammacaps.evaluation.run import results_file
    from gammacaps.evaluation.several import SWEEP, evaluate_runs, evaluation_folders
    from gammacaps.evaluation.table import table

    config, results = options.evaluate, []
    with joined() as processes, evaluation_folders(options.runs, config, processes) as folders:
        for run, figures in evaluate_runs(folders, config, quiet=options.json, processes=processes):
            results.append(figures)
            if not options.json:
                show(f"{table(figures)}\n\n{written(run, results_file(config.norm))}")
            elif len(results) == len(folders):  # before the curve is drawn, which may fail
                show(json.dumps(one_or_all(results)))
    if config.sweep and not options.json:
        show(f"The curve of accuracy over eps: {folders[0] / SWEEP}")


def beyond(options: EvaluateOptions) -> None:
    from gammacaps.beyond.run import PICTURE, beyond_folders, beyond_runs
    from gammacaps.beyond.table import table
    from gammacaps.runs.run import BEYOND

    if launch().count > 1:
        raise InputError("--beyond is measured by one process: start it without torchrun.")
    results = []
    with beyond_folders(options.runs) as folders:
        for run, figures in beyond_runs(folders, options.evaluate, quiet=options.json):
            results.append(figures)
            if not options.json:
                show(f"{table(figures)}\n\nWritten to {run / BEYOND} and {run / PICTURE}")
    if options.json:
        show(json.dumps(one_or_all(results)))


def audit(options: AuditOptions) -> None:
    from gammacaps.auditing.several import audit_folders, audit_runs
    from gammacaps.auditing.table import compare, table
    from gammacaps.runs.run import AUDIT

    results = []
    with audit_folders(options.runs) as folders:
        for run, figures in audit_runs(folders, options.audit, quiet=options.json):
            results.append(figures)
            if not options.json:
                show(f"{table(figures)}\n\n{written(run, AUDIT)}")
    if options.json:
        show(json.dumps(one_or_all(results)))
    elif len(results) > 1:
        show(f"\n{compare(results)}")


def explain(options: ExplainOptions) -> None:
    from gammacaps.reporting.run import FOLDER, explain_run
    from gammacaps.runs.folders import run_folders

    with run_folders((options.run,), folder=FOLDER) as (run,):
        folder = explain_run(run, options.report)
    show(f"Pictures and figures: {folder}")


def report(options: ReportOptions) -> None:
    from gammacaps.reporting.run import report_networks

    show(f"Open in a browser: {report_networks(options.runs, options.report)}")


def explore(options: ExploreOptions) -> None:
    from gammacaps.explorer.run import explore

    explore(options.runs, options.explore)


def reproduce(options: ReproduceOptions) -> None:
    from gammacaps.paper.run import reproduce

    reproduce(options.parts or ("all",), options.reproduce)


def export(options: ExportOptions) -> None:
    from gammacaps.models import export, load

    export(load(options.run), options.out)
    show(f"Images to scores, for any batch: {options.out}")


def data(options: DataOptions) -> None:
    from gammacaps.data.summary import overview, summarize_set

    if options.store is not None:
        store_data(options, options.store)
        return
    if options.name is None:
        facts, words = overview(options.data_dir)
    else:
        facts, words = summarize_set(options.name, options.data_dir, skip_unreadable=options.skip_unreadable)
    show(json.dumps(facts) if options.json else words)


def store_data(options: DataOptions, folder: Path) -> None:
    from gammacaps.data.write_npy_folder import store_set

    if options.name is None:
        raise InputError("Name the data set that is to be stored, such as: gammacaps data photos --store photos-stored")
    how: dict[str, Any] = {"size": options.size, "skip_unreadable": options.skip_unreadable}
    counts = store_set(options.name, folder, data_dir=options.data_dir, **how)
    if options.json:
        show(json.dumps({"folder": str(folder), "images": counts}))
    else:
        show(f"Stored {counts['train']:,} training and {counts['test']:,} test images in {folder}.")
        show(f"Train on them with: {command(f'train --data {shlex.quote(str(folder))}')}")


def data_check(options: DataCheckOptions) -> None:
    from gammacaps.data.inspection import inspect_set
    from gammacaps.data.summary import summarize_inspection

    inspection = inspect_set(options.name, size=options.size, data_dir=options.data_dir)
    facts, words = summarize_inspection(inspection, options.size)
    show(json.dumps(facts) if options.json else words)
    if inspection.problems:
        sys.exit(1)


def demo(options: DemoOptions) -> None:
    from gammacaps.demo import run_demo

    run_demo(options.out, minutes=options.minutes, seed=options.seed)


def bench(options: BenchOptions) -> None:
    from gammacaps.bench.run import run_bench
    from gammacaps.bench.table import table

    rows, failed = run_bench(options.bench, options.out)
    show(json.dumps(rows) if options.json else table(rows))
    if failed:
        sys.exit(1)


def written(run: Path, file: str) -> str:
    """Where figures were written; of a shipped network, that its own are still there."""
    from gammacaps.models.shipped import OWN, is_copy
    from gammacaps.names import SHIPPED, shipped_names

    name = run.name.removesuffix(OWN)
    stay = name != run.name and name in shipped_names() and is_copy(run, SHIPPED / name)
    end = f"; those that came with {name} stay as they are" if stay else ""
    return f"Written to {run / file}{end}. To see it on a page: {command(f'report {shlex.quote(str(run))}')}"


def note(words: str) -> None:
    """On standard error, by the first process for all."""
    if launch().rank == 0:
        print(words, file=sys.stderr)


def one_or_all(results: Sequence[dict[str, Any]]) -> Any:
    """The figures of one run as they are, those of several as a list."""
    return results[0] if len(results) == 1 else results


VERBS: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
    "start": (StartOptions, start),
    "train": (TrainOptions, train),
    "evaluate": (EvaluateOptions, evaluate),
    "audit": (AuditOptions, audit),
    "explain": (ExplainOptions, explain),
    "report": (ReportOptions, report),
    "explore": (ExploreOptions, explore),
    "reproduce": (ReproduceOptions, reproduce),
    "export": (ExportOptions, export),
    "data": (DataOptions, data),
    "data check": (DataCheckOptions, data_check),
    "demo": (DemoOptions, demo),
    "bench": (BenchOptions, bench),
}

TOGETHER = ("train", "evaluate")  # what several processes that torchrun starts can do as one
