"""Measures a run beyond its ball and writes beyond.json and beyond.png: `gammacaps evaluate RUN --beyond`."""

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gammacaps.beyond.kept import KeptParts
from gammacaps.beyond.measure import calibrated, corrupted, deadline_of, in_norms, over_the_angle, placed_worst, subject
from gammacaps.beyond.measure import unseen as measure_unseen
from gammacaps.beyond.sureness import KnownPatterns, said
from gammacaps.beyond.unseen import other_sets
from gammacaps.data import DataSet, StoredSet
from gammacaps.data.fingerprint import fingerprint
from gammacaps.environment import describe_machine, pick_device
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced_places
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.interval import share
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.radii import usual_radius
from gammacaps.evaluation.run import FOLDER
from gammacaps.files import write_json
from gammacaps.models import Model, check_fit, has_capsules
from gammacaps.progress import Progress, say
from gammacaps.runs.beyond import FORMAT
from gammacaps.runs.chosen_by import chosen_by
from gammacaps.runs.folders import run_folders
from gammacaps.runs.run import BEYOND, Run

PICTURE = "beyond.png"
LEARNED = 2000  # training images from which the usual patterns of hidden capsules are learned


def beyond_folders(names: Sequence[Path]) -> contextlib.AbstractContextManager[tuple[Path, ...]]:
    """Where the networks' figures go, as in `run_folders`."""
    return run_folders(names, (BEYOND, PICTURE), FOLDER)


def beyond_runs(
    folders: Sequence[Path], config: EvaluateConfig, *, quiet: bool = False
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each run's folder and its figures, as soon as they are there."""
    for folder in folders:
        yield folder, beyond_run(folder, config, quiet=quiet)


def beyond_run(run: Path, config: EvaluateConfig, *, quiet: bool = False) -> dict[str, Any]:
    """The figures of a run; what was measured before is taken from its folder."""
    from gammacaps.beyond.picture import draw  # matplotlib, which takes a second

    started = time.monotonic()
    of, progress = Run(run).checked(), Progress(quiet=quiet)
    name, data_dir = of.data_name(config.data, trust=config.trust), of.data_dir(config.data_dir)
    data = of.open_data("test", name, data_dir=data_dir)
    if note := chosen_by(of.config.train, data.name):
        say(f"Note: {note}")
    sources, notes = other_sets(data.name, config.unseen, data_dir)
    config = dataclasses.replace(config, data=name)
    device = pick_device(config.device)
    model = of.model(device).eval()
    check_fit(model, data)
    radii = {norm: usual_radius(norm, of, data.name) for norm in ("linf", "l2", "l1")}
    if config.eps is not None:
        radii["linf"] = config.eps[0]
    weights, printed = identity(model), fingerprint(data.images, data.labels)
    places = balanced_places(data, config.limit)
    about = {"seed": config.seed, "images": hashlib.sha256(str(places.tolist()).encode()).hexdigest()[:16]}
    deadline = deadline_of(config, started)
    store = PredictionStore(run / FOLDER, weights=weights, data=printed)
    parts = KeptParts(run / FOLDER, weights=weights, data=printed, about=about, deadline=deadline)
    images, labels = _at(data, places)
    patterns = usual_patterns(of, model, config, data_dir, name)
    try:
        known = subject(model, images, labels, config, places=places, progress=progress)
        norms = in_norms(known, radii, store, deadline)
        figures = {
            "clean": share(known.correct),
            "norms": norms,
            "spatial": placed_worst(known, parts),
            "turned": over_the_angle(known, parts),
            "corruptions": corrupted(known, parts),
            "unseen": measure_unseen(known, sources, patterns, parts, eps=radii["linf"], data_dir=data_dir),
            "calibration": calibrated(known),
            "notes": notes,
            "complete": parts.complete and all(row["complete"] for row in norms),
        }
    except KeyboardInterrupt:
        words = f"Stopped. What was measured is kept in {run / FOLDER}: the same command goes on from there."
        raise KeyboardInterrupt(words) from None
    results = {
        "format": FORMAT,
        "run": str(run),
        "weights": weights,
        "trained_steps": of.steps,
        "data": {"name": data.name, "source": str(data.source), "split": "test", "images": len(labels)},
        "class_names": list(data.class_names),
        **figures,
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(config).items()},
        "machine": describe_machine(config.device),
        "seconds": round(time.monotonic() - started, 1),
    }
    write_json(run / BEYOND, results)
    draw(results, run / PICTURE)
    return results


def usual_patterns(
    of: Run, model: Model, config: EvaluateConfig, data_dir: str | None, name: str
) -> KnownPatterns | None:
    """Which hidden capsules are on for each class, by training images; None for a network that has none."""
    if not has_capsules(model) or len(model.layers) < 3:
        return None
    data = of.open_data("train", name, data_dir=data_dir)
    images, labels = _at(data, balanced_places(data, LEARNED))
    pattern = said(model, images, config.batch, next(model.parameters()).device).pattern
    return None if pattern is None else KnownPatterns(pattern, labels, model.classes)


def _at(data: DataSet | StoredSet, places: Any) -> tuple[Any, Any]:
    chosen = data.images.at(places) if isinstance(data, StoredSet) else data.images[places]
    return chosen, data.labels[places]
