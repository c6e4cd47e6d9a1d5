"""Evaluates a run's folder and writes its results.json."""

import sys
import time
from pathlib import Path
from typing import Any

from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import evaluate
from gammacaps.files import write_json
from gammacaps.models import load
from gammacaps.models.stored import read_config


def evaluate_run(run: Path, config: EvaluateConfig, *, quiet: bool = False) -> dict[str, Any]:
    """The figures of a run, on the data it was trained on unless the configuration names other data."""
    stored = read_config(run)
    training = stored.get("train", {})
    name = config.data or training.get("data")
    if name is None:
        raise InputError(f"{run} does not say what it was trained on: name a data set with --data.")
    data = load_set(name, "test", data_dir=config.data_dir or training.get("data_dir"), size=training.get("size"))
    results = {"run": str(run), "model": stored["model"], **evaluate(load(run), data, config, _Lines(quiet))}
    write_json(run / "results.json", results)
    return results


class _Lines:
    """A line of progress on standard error: rewritten on a terminal, one each few seconds elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.terminal, self.last = quiet, sys.stderr.isatty(), time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.quiet:
            return
        if self.terminal:
            print(f"\r{what}: {done}/{total} images\033[K", end="\r", file=sys.stderr, flush=True)
        elif time.monotonic() - self.last > 10:
            self.last = time.monotonic()
            print(f"{what}: {done}/{total} images", file=sys.stderr, flush=True)
