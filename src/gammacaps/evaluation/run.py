"""Evaluates a run's folder and writes its results.json."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from gammacaps.data import load_set
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import evaluate
from gammacaps.evaluation.robustness import PAPER_EPS
from gammacaps.evaluation.store import Store, fingerprint
from gammacaps.files import write_json
from gammacaps.lines import Lines
from gammacaps.models import Model, load
from gammacaps.models.stored import read_config
from gammacaps.training.config import TrainConfig
from gammacaps.training.loop import METRICS, train

FOLDER = "evaluation"  # in the run's folder: what each attack made of each image


def evaluate_run(run: Path, config: EvaluateConfig, *, quiet: bool = False) -> dict[str, Any]:
    """The figures of a run, on the data it was trained on unless the configuration names other data."""
    stored = read_config(run)
    training = stored.get("train", {})
    name = config.data or training.get("data")
    if name is None:
        raise InputError(f"{run} does not say what it was trained on: name a data set with --data.")
    data_dir, size = config.data_dir or training.get("data_dir"), training.get("size")
    data = load_set(name, "test", data_dir=data_dir, size=size)
    config = dataclasses.replace(config, eps=radii(config, training), data=name)
    model = load(run)
    store = Store(
        run / FOLDER, weights=fingerprint(*model.state_dict().values()), data=fingerprint(data.images, data.labels)
    )
    report = Lines(quiet)
    other = None
    if "transfer" in config.named_attacks():
        other = transfer_network(run, model, name, data_dir, size, config, quiet)
    try:
        results = evaluate(model, data, config, report, other=other, store=store)
    except KeyboardInterrupt:
        words = f"Stopped. What was measured is kept in {run / FOLDER}: the same command goes on from there."
        raise KeyboardInterrupt(words) from None
    results = {"run": str(run), "model": stored["model"], "trained_steps": trained_steps(run), **results}
    write_json(run / "results.json", results)
    return results


def trained_steps(run: Path) -> int | None:
    """How long the network was trained, for a run may have been stopped early; None where the run does not say."""
    try:
        return int(json.loads((run / METRICS).read_text().splitlines()[-1])["step"])
    except (OSError, IndexError, KeyError, ValueError):
        return None


def radii(config: EvaluateConfig, training: dict[str, Any]) -> tuple[float, ...]:
    """Those asked for; else the paper's for its suite, and for others the one that the network was trained at."""
    if config.eps is not None:
        return config.eps
    eps = training.get("eps")
    return PAPER_EPS if config.attacks == ("paper",) or not eps else (float(eps),)


def transfer_network(
    run: Path, model: Model, data: str, data_dir: str | None, size: int | None, config: EvaluateConfig, quiet: bool
) -> Model:
    """A small CNN for the same task, which the attack "transfer" uses; trained at its first use and kept."""
    folder = run / FOLDER / "cnn"
    if not folder.exists():
        if not quiet:
            print("Training a small CNN, whose attacked images are tried on the network ...", file=sys.stderr)
        training = TrainConfig(
            data=data,
            data_dir=data_dir,
            size=size,
            preset="cnn",
            model=("filters=[16, 32]", "width=256"),
            robust=False,
            steps=250,
            batch=64,
            lr=1e-3,
            device=config.device,
        )
        train(training, folder)
    return load(folder, device=pick_device(config.device))
