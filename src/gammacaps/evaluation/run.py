"""Evaluates a run's folder and writes its results.json."""

import contextlib
import dataclasses
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gammacaps.data import open_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import check_fit, evaluate
from gammacaps.evaluation.robustness import PAPER_EPS
from gammacaps.evaluation.store import Store, fingerprint, identity
from gammacaps.files import write_json
from gammacaps.lines import Lines
from gammacaps.models import Model, load
from gammacaps.models.stored import read_config
from gammacaps.processes import ALONE, Processes, joined, own_device
from gammacaps.training.config import TrainConfig
from gammacaps.training.log import METRICS
from gammacaps.training.loop import train

EPS = 0.1  # where no run says
FOLDER = "evaluation"  # in the run's folder: what each attack made of each image


def evaluate_run(
    run: Path, config: EvaluateConfig, *, quiet: bool = False, processes: Processes | None = None
) -> dict[str, Any]:
    """The figures of a run, on the data it was trained on unless the configuration names other data.

    Processes that torchrun started share the work unless told otherwise; the first reads and writes the run's folder.
    """
    with joined() if processes is None else contextlib.nullcontext(processes) as together:
        return _evaluate_run(run, config, quiet or together.rank > 0, together)


def _evaluate_run(run: Path, config: EvaluateConfig, quiet: bool, processes: Processes) -> dict[str, Any]:
    stored = processes.first(lambda: read_config(run))
    training = stored.get("train", {})
    name = data_name(run, stored, config.data)
    data_dir, size = config.data_dir or training.get("data_dir"), training.get("size")
    data = processes.each(lambda: open_set(name, "test", data_dir=data_dir, size=size))
    config = dataclasses.replace(config, eps=radii(config, training), data=name)
    model = processes.first(lambda: load(run))
    check_fit(model, data)
    named = tuple(stored.get("data", {}).get("class_names", data.class_names))
    if named != tuple(data.class_names) and processes.rank == 0:
        own, others = (", ".join(names[:3]) for names in (named, data.class_names))
        words = f"the network was trained on {own}, ... and {data.name} has {others}, ..."
        print(f"Note: {words}: the first counts as the first, and so on.", file=sys.stderr)
    data_print = fingerprint(data.images, data.labels)
    if not processes.same(data_print):
        raise InputError(f"{data.name} is not the same on all machines: give each the same files.")
    weights = identity(model)
    store = Store(run / FOLDER, weights=weights, data=data_print, processes=processes)
    try:
        other = None
        if "transfer" in config.named_attacks():
            training_data = {"data": name, "data_dir": data_dir, "size": size, "device": config.device}
            folder = run / FOLDER / f"cnn-{data_print[:8]}"
            processes.each(lambda: own_device(config.device))
            other = processes.first(lambda: transfer_network(folder, training_data, quiet))
            other.to(own_device(config.device))
        results = evaluate(model, data, config, Lines(quiet), other=other, store=store, processes=processes)
    except KeyboardInterrupt:
        words = f"Stopped. What was measured is kept in {run / FOLDER}: the same command goes on from there."
        raise KeyboardInterrupt(words) from None
    steps = processes.first(lambda: trained_steps(run))
    results = {"run": str(run), "model": stored["model"], "weights": weights, "trained_steps": steps, **results}
    processes.first(lambda: write_json(run / "results.json", results))
    return results


def data_name(run: Path, stored: dict[str, Any], asked: str | None) -> str:
    """The data to look at a run with: what is asked for, else what its card or its training names."""
    name = asked or stored.get("measured_on") or stored.get("train", {}).get("data")
    if name is None:
        raise InputError(f"{run} does not say what it was trained on: name a data set with --data.")
    return str(name)


def trained_steps(run: Path) -> int | None:
    """How long the network was trained, for a run may have been stopped early; None where the run does not say."""
    try:
        return int(json.loads((run / METRICS).read_text().splitlines()[-1])["step"])
    except (OSError, IndexError, KeyError, ValueError):
        return read_config(run).get("trained_steps")  # of shipped weights


def radii(config: EvaluateConfig, training: dict[str, Any]) -> tuple[float, ...]:
    """Those asked for; else the paper's for its suite, and for others the one that the network was trained at."""
    if config.eps is not None:
        return config.eps
    return PAPER_EPS if config.attacks == ("paper",) else (radius_of(training) or EPS,)


def radius_of(training: dict[str, Any]) -> float | None:
    """The radius that a network was trained at; None where it was not trained under attack."""
    return float(training["eps"]) if training.get("robust") and training.get("eps") else None


def common_radius(runs: Sequence[Path]) -> float:
    """One for runs that are compared: the first that one of them was trained at."""
    found = (radius_of(read_config(run).get("train", {})) for run in runs)
    return next((eps for eps in found if eps is not None), EPS)


def transfer_network(folder: Path, options: dict[str, Any], quiet: bool) -> Model:
    """A small CNN for the same task, which the attack "transfer" uses; trained at its first use and kept whole."""
    if not folder.exists():
        if not quiet:
            print("Training a small CNN, whose attacked images are tried on the network ...", file=sys.stderr)
        small: dict[str, Any] = {"preset": "cnn", "model": ("filters=[16, 32]", "width=256"), "robust": False}
        training = TrainConfig(steps=250, batch=64, lr=1e-3, **small, **options)
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            train(training, Path(temporary) / "cnn", processes=ALONE)
            (Path(temporary) / "cnn").rename(folder)
    return load(folder)
