"""A network and a test set to figures: accuracy clean and under attack, T and D, the confusion matrix."""

import dataclasses
import time
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks.gradient import Classifier
from gammacaps.data import DataSet, StoredImages, StoredSet
from gammacaps.distributed.processes import ALONE, Processes, own_device
from gammacaps.environment import describe_machine
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.measure import Report
from gammacaps.evaluation.robustness import robustness
from gammacaps.evaluation.store import Store
from gammacaps.evaluation.turns import in_turns
from gammacaps.metrics import TScore, d_score
from gammacaps.models import CapsuleModel, Model, check_fit, has_capsules


def evaluate(
    model: Model,
    data: DataSet | StoredSet,
    config: EvaluateConfig,
    report: Report = lambda *_: None,
    *,
    other: Classifier | None = None,
    store: Store | None = None,
    processes: Processes = ALONE,
) -> dict[str, Any]:
    """All figures of a network on a test set, as the plain values of results.json; see `robustness`."""
    check_fit(model, data)
    device = processes.each(lambda: own_device(config.device))
    model = model.to(device).eval()
    places = balanced_places(data, config.limit)
    chosen = data.images.at(places) if isinstance(data, StoredSet) else data.images[places]
    images, labels = chosen.to(device), data.labels[places].to(device)
    started = time.monotonic()
    predicted, structure = look(model, images, labels, config.batch, report, processes)
    shared: dict[str, Any] = {"places": places, "store": store, "report": report, "processes": processes}
    figures = robustness(model, images, labels, config, other=other, **shared)
    return {
        "format": 2,
        "data": {"name": data.name, "source": str(data.source), "split": "test", "images": len(images)},
        "class_names": list(data.class_names),
        **figures,
        **structure,
        "confusion": confusion(labels.cpu(), predicted, model.classes),
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(config).items()},
        "machine": describe_machine(config.device, processes=processes.count),
        "seconds": round(time.monotonic() - started, 1),
    }


def balanced(data: DataSet, limit: int | None) -> tuple[Tensor, Tensor]:
    """The images and labels, or the first `limit` of them, each class in its turn."""
    places = balanced_places(data, limit)
    return data.images[places], data.labels[places]


def balanced_places(data: DataSet | StoredSet, limit: int | None) -> Tensor:
    """Where they stand in the data set."""
    if limit is None or limit >= len(data.labels):
        return torch.arange(len(data.labels))
    return in_turns(data.labels)[:limit].sort().values


@dataclasses.dataclass(frozen=True, eq=False)
class Look:
    """What one batch shows: its predictions, T by layer and class (None: all), the hidden layers' activations."""

    predicted: Tensor
    trees: dict[tuple[int, int | None], TScore]
    hidden: list[Tensor]


@torch.no_grad()
def look(
    model: Model,
    images: Tensor | StoredImages,
    labels: Tensor,
    batch: int,
    report: Report,
    processes: Processes = ALONE,
) -> tuple[Tensor, dict[str, Any]]:
    """Predictions, and for capsules T of each routed layer and D of each hidden one, over all and by class."""
    groups: list[int | None] = [None, *range(model.classes)]  # None is all classes together

    def seen(start: int) -> Look:
        part, own = images[start : start + batch], labels[start : start + batch]
        report("clean", min(start + batch, len(images)), len(images))
        if not has_capsules(model):
            return Look(model(part).argmax(1).cpu(), {}, [])
        parse = model.parse(part)
        trees: dict[tuple[int, int | None], TScore] = {}
        for l, couplings in enumerate(parse.couplings):
            assert couplings is not None
            for group in groups:
                chosen = couplings if group is None else couplings[own == group]
                if len(chosen):
                    # Every process will have all batches: no metric may add up over processes once more.
                    trees[l, group] = TScore(sync_on_compute=False).to(couplings.device)
                    trees[l, group].update(chosen, parse.parents[l])
        return Look(
            parse.scores.argmax(dim=1).cpu(),
            {key: tree.cpu() for key, tree in trees.items()},
            [a.cpu() for a in parse.activations[1:-1]],
        )

    found = processes.map(seen, range(0, len(images), batch))
    predicted = torch.cat([one.predicted for one in found])
    if not has_capsules(model):
        return predicted, {"T": None, "D": None}
    trees = dict(found[0].trees)
    for one in found[1:]:
        for key, tree in one.trees.items():
            if trees.setdefault(key, tree) is not tree:
                trees[key].merge_state(tree)
    hidden = [torch.cat(layer) for layer in zip(*(one.hidden for one in found), strict=True)]
    scores = {group: _structure(model, trees, hidden, labels.cpu(), group) for group in groups}
    by_class = [scores[group] for group in range(model.classes)]
    return predicted, {
        "T": {**scores[None]["T"], "by_class": [s["T"] for s in by_class]},
        "D": {**scores[None]["D"], "by_class": [s["D"] for s in by_class]},
    }


def _structure(
    model: CapsuleModel,
    trees: dict[tuple[int, int | None], TScore],
    hidden: list[Tensor],
    labels: Tensor,
    group: int | None,
) -> dict[str, Any]:
    """T and D of the images of one class, or of all: by layer and their mean; None where there are no images."""
    mine = torch.ones_like(labels, dtype=torch.bool) if group is None else labels == group
    layers = model.layers[1:]
    T = [trees[l, group].compute().item() if mine.any() else None for l in range(len(layers))]
    exact = [d_score(layer[mine]).item() if mine.any() else None for layer in hidden]
    batches = [d_score(layer[mine], batch_size=100).item() if mine.any() else None for layer in hidden]
    return {
        "T": {"mean": _mean(T), "layers": dict(zip(layers, T, strict=True))},
        "D": {
            "mean": _mean(exact),
            "mean_over_batches_of_100": _mean(batches),
            "layers": dict(zip(layers[:-1], exact, strict=True)),
        },
    }


def confusion(labels: Tensor, predicted: Tensor, classes: int) -> list[list[int]]:
    """Row by true class, column by predicted class."""
    return torch.bincount(labels * classes + predicted, minlength=classes**2).view(classes, classes).tolist()


def _mean(values: list[float | None]) -> float | None:
    present = [v for v in values if v is not None]
    return sum(present) / len(present) if present else None
