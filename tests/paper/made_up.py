"""Records of runs that never were, with figures that a test chooses."""

from typing import Any

import numpy as np

from gammacaps.evaluation.interval import wilson
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.expected import EPS, TENTH
from gammacaps.paper.plan import plan
from gammacaps.paper.record import Record

RUNS = plan(ReproduceConfig())
NAMES = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


def share(accuracy: float, images: int = 1000) -> dict[str, Any]:
    right = round(accuracy * images)
    return {"accuracy": right / images, "interval": wilson(right, images), "correct": right, "images": images}


def record(name: str, *, steps: int | None = None, **changes: Any) -> Record:
    """A run of the plan, with these figures: scores, accuracies clean and by radius, shares, lengths."""
    planned = RUNS[name]
    told = {"T": 0.5, "D": 0.4, "D0": 0.2, "clean": 0.9, "pgd": (0.7, 0.5, 0.1), "fgsm": (0.8, 0.6, 0.2)}
    told |= {"worst": (0.6, 0.4, 0.05), "shirts": 0.5, "lengths": 0.8, "tenth": 0.5, "nothing": []}
    told |= {"counts": [], "skipped": [], **changes}
    attacks, tenth = (
        [
            {"attack": attack, "eps": eps, **share(told[attack][place])}
            for attack in ("fgsm", "pgd")
            for place, eps in enumerate(radii)
        ]
        for radii in (EPS, TENTH)
    )
    classes = 5 if planned.data == "smallnorb" else 10
    confusion = np.diag(told["counts"] or [100] * classes).tolist()
    if classes == 10:
        shirts = confusion[6][6]
        confusion[6][6] = round(shirts * told["shirts"])
        confusion[6][0] = shirts - confusion[6][6]
    one_class = {"mean": told["D0"], "mean_over_batches_of_100": told["D0"]}
    every = {"mean": told["D"], "mean_over_batches_of_100": told["D"]}
    few = {"classes": [1000 // classes] * classes, "attacks": ["noise", "apgd-t"]}
    at = dict(zip(EPS, told["worst"], strict=True))
    worst = [{"eps": eps, **share(at.get(eps, at[0.1])), **few} for eps, _ in planned.worst]
    lengths = told["lengths"] if isinstance(told["lengths"], list) else [told["lengths"]] * 10
    inputs = [{"activation": length, "scores": [0.1] * 9 + [0.8]} for length in lengths]
    figures = {
        "name": name,
        "data": planned.data,
        "rule": planned.rule,
        "kind": planned.kind,
        "quick": False,
        "steps": steps or planned.moments[-1],
        "total": planned.moments[-1],
        "seed": planned.config.seed,
        "train": vars(planned.config) | {"model": []},
        "train_seconds": 60.0,
        "measure_seconds": 30.0,
        "machine": {"device_name": "a machine", "torch": "2.13", "gammacaps": "0.1.0"},
        "commit": "abc1234",
        "results": {
            "clean": share(told["clean"]),
            "attacks": attacks,
            "T": {"mean": told["T"], "by_class": [{"mean": told["T"]}]},
            "D": {**every, "by_class": [one_class]},
            "confusion": confusion,
            "class_names": NAMES,
            "weights": "0123abcd",
            "data": {"source": "smallnorb48-testing-dat.mat.gz", "images": 1000},
        },
        "worst": worst,
        "checks": [{"check": "fgsm-beats-pgd", "verdict": "pass"}] if worst else [],
        "skipped": told["skipped"],
        "filters": {"largest_tenth": told["tenth"]},
        "nothing": {"classes": told["nothing"], "meaning": "Something stands for none of the above."},
        "map": {"unit": "capsule", "D_shuffled": 0.3, "D_alone": 0.1},
        "generated": {"starts": 4, "steps": 5, "class": inputs, "hidden": inputs[:6]},
    }
    if planned.data == "smallnorb":
        figures["tenth"] = tenth
    noise = np.random.default_rng(0)
    arrays = {
        "filters": noise.standard_normal((4, 1, 3, 3)).astype(np.float16),
        "map_shuffled": noise.integers(0, 255, (5, 6), dtype=np.uint8),
        "map_alone": noise.integers(0, 255, (5, 6), dtype=np.uint8),
        "examples": noise.integers(0, 255, (10, 1, 28, 28), dtype=np.uint8),
        "generated_class": noise.integers(0, 255, (10, 1, 28, 28), dtype=np.uint8),
        "generated_hidden": noise.integers(0, 255, (6, 1, 28, 28), dtype=np.uint8),
        "reconstructions": noise.integers(0, 255, (10, 1, 28, 28), dtype=np.uint8),
    }
    return Record(figures, arrays)


def as_the_paper_says() -> dict[str, Record]:
    """All runs of the plan, with figures by which every claim holds but the one that no network can keep."""
    found = {}
    for name, planned in RUNS.items():
        changes: dict[str, Any] = {}
        if planned.rule in ("rba", "em"):
            changes = {"T": 0.02 if planned.rule == "rba" else 0.3, "D": 0.2, "D0": 0.2, "lengths": 0.99}
            changes |= {"worst": (0.3, 0.2, 0.0)}
        if planned.rule == "cnn":
            changes = {"worst": (0.3, 0.2, 0.0)}
        if planned.rule == "sda" and planned.config.robust:
            changes = {"pgd": (0.98, 0.93, 0.1), "fgsm": (0.99, 0.95, 0.2), "nothing": [7], "tenth": 0.6}
        if planned.kind == "standard" and planned.rule != "sda":
            changes |= {"pgd": (0.1, 0.0, 0.0), "fgsm": (0.2, 0.1, 0.0)}
        found[name] = record(name, **changes)
    name = "fashion-mnist-sda-long-0"
    early = record(name, steps=5000, shirts=0.0)
    found[name] = Record(found[name].figures, found[name].arrays, (early,))
    return found
