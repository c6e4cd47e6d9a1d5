"""Evaluates a run's folder and writes its results.json."""

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import Any

from gammacaps.attacks.table import attack_named
from gammacaps.data.fingerprint import fingerprint
from gammacaps.distributed.processes import Processes, joined, own_device
from gammacaps.errors import InputError
from gammacaps.evaluation.by_image import ByImage
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import evaluate
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.radii import radii
from gammacaps.evaluation.surrogate import surrogate_network
from gammacaps.files import write_json
from gammacaps.models import check_fit
from gammacaps.progress import Progress
from gammacaps.runs.chosen_by import chosen_by
from gammacaps.runs.run import RESULTS, Run

FOLDER = "evaluation"  # in the run's folder: what each attack made of each image


def evaluate_run(
    run: Path,
    config: EvaluateConfig,
    *,
    quiet: bool = False,
    processes: Processes | None = None,
    by_image: ByImage | None = None,
) -> dict[str, Any]:
    """The figures of a run, on the data it was trained on unless the configuration names other data.

    Processes that torchrun started share the work unless told otherwise; the first reads and writes the run's folder.
    """
    with joined() if processes is None else contextlib.nullcontext(processes) as together:
        return _evaluate_run(run, config, quiet or together.rank > 0, together, by_image)


def _evaluate_run(
    run: Path, config: EvaluateConfig, quiet: bool, processes: Processes, by_image: ByImage | None
) -> dict[str, Any]:
    of = processes.first(lambda: Run(run).checked())
    name = of.data_name(config.data, trust=config.trust)
    data_dir = of.data_dir(config.data_dir)
    data = processes.each(lambda: of.open_data("test", name, data_dir=data_dir))
    config = dataclasses.replace(config, eps=radii(config, of, data.name), data=name)
    model = processes.first(of.model)
    check_fit(model, data)
    named = of.config.data.class_names or tuple(data.class_names)
    if named != tuple(data.class_names) and processes.rank == 0:
        own, others = (", ".join(names[:3]) for names in (named, data.class_names))
        words = f"the network was trained on {own}, ... and {data.name} has {others}, ..."
        print(f"Note: {words}: the first counts as the first, and so on.", file=sys.stderr)
    if (note := chosen_by(of.config.train, data.name)) and processes.rank == 0:
        print(f"Note: {note}", file=sys.stderr)
    data_print = fingerprint(data.images, data.labels)
    if not processes.same(data_print):
        raise InputError(f"{data.name} is not the same on all machines: give each the same files.")
    weights = identity(model)
    store = PredictionStore(run / FOLDER, weights=weights, data=data_print, processes=processes)
    try:
        other = None
        if any(attack_named(name).sees == "another network" for name in config.named_attacks()):
            training_data = {"data": name, "data_dir": data_dir, "size": of.size, "device": config.device}
            training_data["skip_unreadable"] = of.skip_unreadable
            folder = run / FOLDER / f"cnn-{data_print[:8]}"
            processes.each(lambda: own_device(config.device))
            other = processes.first(lambda: surrogate_network(folder, training_data, quiet))
            other.to(own_device(config.device))
        shared: dict[str, Any] = {"other": other, "store": store, "processes": processes, "by_image": by_image}
        results = evaluate(model, data, config, Progress(quiet=quiet), **shared)
    except KeyboardInterrupt:
        words = f"Stopped. What was measured is kept in {run / FOLDER}: the same command goes on from there."
        raise KeyboardInterrupt(words) from None
    steps = processes.first(lambda: of.steps)
    results = {"run": str(run), "model": of.config.model, "weights": weights, "trained_steps": steps, **results}
    processes.first(lambda: write_json(run / results_file(config.norm), results))
    return results


def results_file(norm: str) -> str:
    """Where figures are written: what report, explorer and cards show are those of L-inf; others lie beside."""
    return RESULTS if norm == "linf" else f"results-{norm}.json"
