"""A network and a test set to figures: accuracy clean and under attack, T and D, the confusion matrix."""

import dataclasses
import time
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks.gradient import Classifier
from gammacaps.data import DataSet, StoredSet
from gammacaps.distributed.processes import ALONE, Processes, own_device
from gammacaps.environment import describe_machine
from gammacaps.evaluation.by_image import ByImage
from gammacaps.evaluation.class_turns import places_in_turns
from gammacaps.evaluation.clean import clean_figures
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.robustness import robustness
from gammacaps.models import Model, check_fit
from gammacaps.progress import OnProgress
from gammacaps.runs.results import FORMAT


def evaluate(
    model: Model,
    data: DataSet | StoredSet,
    config: EvaluateConfig,
    progress: OnProgress = lambda *_: None,
    *,
    other: Classifier | None = None,
    store: PredictionStore | None = None,
    processes: Processes = ALONE,
    by_image: ByImage | None = None,
) -> dict[str, Any]:
    """All figures of a network on a test set, as the plain values of results.json; see `robustness`."""
    check_fit(model, data)
    device = processes.each(lambda: own_device(config.device))
    model = model.to(device).eval()
    places = balanced_places(data, config.limit)
    chosen = data.images.at(places) if isinstance(data, StoredSet) else data.images[places]
    images, labels = chosen.to(device), data.labels[places].to(device)
    started = time.monotonic()
    scores, structure = clean_figures(model, images, labels, config.batch, progress, processes)
    shared: dict[str, Any] = {"places": places, "store": store, "progress": progress, "processes": processes}
    shared["by_image"] = by_image
    figures = robustness(model, images, labels, config, other=other, scores=scores, **shared)
    return {
        "format": FORMAT,
        "data": {"name": data.name, "source": str(data.source), "split": "test", "images": len(images)},
        "class_names": list(data.class_names),
        **figures,
        **structure,
        "confusion": confusion(labels.cpu(), scores.argmax(dim=1).cpu(), model.classes),
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(config).items()},
        "machine": describe_machine(config.device, processes=processes.count),
        "seconds": round(time.monotonic() - started, 1),
    }


def balanced(data: DataSet, limit: int | None) -> tuple[Tensor, Tensor]:
    """The images and labels, or a fair sample of `limit` of them, each class in its turn."""
    places = balanced_places(data, limit)
    return data.images[places], data.labels[places]


def balanced_places(data: DataSet | StoredSet, limit: int | None) -> Tensor:
    """Where they stand in the data set."""
    if limit is None or limit >= len(data.labels):
        return torch.arange(len(data.labels))
    return places_in_turns(data)[:limit].sort().values


def confusion(labels: Tensor, predicted: Tensor, classes: int) -> list[list[int]]:
    """Row by true class, column by predicted class."""
    return torch.bincount(labels * classes + predicted, minlength=classes**2).view(classes, classes).tolist()
