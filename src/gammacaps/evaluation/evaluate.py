"""A network, images and attacks to figures: accuracy with its interval, T and D, the confusion matrix."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks import fgsm, pgd
from gammacaps.data import DataSet
from gammacaps.environment import describe_machine, pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.metrics import TScore, d_score
from gammacaps.models import CNN, CapsuleModel, Model

Report = Callable[[str, int, int], None]  # what is being done, images done, images in all


def evaluate(model: Model, data: DataSet, config: EvaluateConfig, report: Report = lambda *_: None) -> dict[str, Any]:
    """All figures of a network on a test set, as the plain values of results.json."""
    device = pick_device(config.device)
    model = model.to(device).eval()
    images, labels = (t.to(device) for t in balanced(data, config.limit))
    if tuple(images.shape[1:]) != model.config.image_shape or len(data.class_names) != model.config.classes:
        raise InputError(
            f"The network takes images of shape {model.config.image_shape} in {model.config.classes} classes, but "
            f"{data.name} has {tuple(images.shape[1:])} in {len(data.class_names)}: evaluate it on data like its own."
        )
    started = time.monotonic()
    predicted, structure = look(model, images, labels, config.batch, report)
    correct = predicted == labels
    attacks = [
        attack(model, images, labels, correct, name, eps, config, report)
        for name in ("fgsm", "pgd")
        for eps in config.eps
    ]
    return {
        "format": 1,
        "data": {"name": data.name, "source": str(data.source), "split": "test", "images": len(images)},
        "class_names": list(data.class_names),
        "clean": share(correct),
        "attacks": attacks,
        **structure,
        "confusion": confusion(labels, predicted, model.config.classes),
        "settings": {**dataclasses.asdict(config), "eps": list(config.eps)},
        "machine": describe_machine(config.device),
        "seconds": round(time.monotonic() - started, 1),
    }


def balanced(data: DataSet, limit: int | None) -> tuple[Tensor, Tensor]:
    """The images and labels, or the first `limit` of them, each class in its turn."""
    if limit is None or limit >= len(data.labels):
        return data.images, data.labels
    place = torch.empty_like(data.labels)  # each image's place among those of its class
    for label in data.labels.unique():
        members = (data.labels == label).nonzero().squeeze(1)
        place[members] = torch.arange(len(members))
    first = place.argsort(stable=True)[:limit].sort().values
    return data.images[first], data.labels[first]


@torch.no_grad()
def look(model: Model, images: Tensor, labels: Tensor, batch: int, report: Report) -> tuple[Tensor, dict[str, Any]]:
    """Predictions, and for capsules T of each routed layer and D of each hidden one, over all and by class."""
    if isinstance(model, CNN):
        return torch.cat([model(part).argmax(1) for part in images.split(batch)]), {"T": None, "D": None}
    groups: list[int | None] = [None, *range(model.config.classes)]  # None is all classes together
    trees = {(l, group): TScore().to(images.device) for l in range(len(model.layers) - 1) for group in groups}
    predicted, activations = [], []
    for done in range(0, len(images), batch):
        parse = model.parse(images[done : done + batch])
        own = labels[done : done + batch]
        for (l, group), tree in trees.items():
            couplings = parse.couplings[l]
            assert couplings is not None
            chosen = couplings if group is None else couplings[own == group]
            if len(chosen):
                tree.update(chosen, parse.parents[l])
        predicted.append(parse.scores.argmax(dim=1))
        activations.append([a.cpu() for a in parse.activations[1:-1]])
        report("clean", min(done + batch, len(images)), len(images))
    hidden = [torch.cat(layer) for layer in zip(*activations, strict=True)]
    scores = {group: _structure(model, trees, hidden, labels.cpu(), group) for group in groups}
    by_class = [scores[group] for group in range(model.config.classes)]
    return torch.cat(predicted), {
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
    trees_of = [trees[l, group] for l in range(len(layers))]
    T = [tree.compute().item() if mine.any() else None for tree in trees_of]
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


def attack(
    model: Model,
    images: Tensor,
    labels: Tensor,
    correct: Tensor,
    name: str,
    eps: float,
    config: EvaluateConfig,
    report: Report,
) -> dict[str, Any]:
    """Accuracy under one attack. An image counts if it is right both clean and attacked: no change is a change too."""
    generator = torch.Generator(images.device).manual_seed(config.seed)
    kept = correct.clone()
    title = f"{name.upper()} eps {eps:g}"
    for done in range(0, len(images), config.batch):
        index = done + kept[done : done + config.batch].nonzero().squeeze(1)
        if len(index):
            if name == "fgsm":
                attacked = fgsm(model, images[index], labels[index], eps=eps, loss=config.attack_loss)
            else:
                attacked = pgd(
                    model,
                    images[index],
                    labels[index],
                    eps=eps,
                    step=config.attack_step,
                    steps=config.attack_steps,
                    restarts=config.restarts,
                    loss=config.attack_loss,
                    until_broken=True,
                    generator=generator,
                )
            with torch.no_grad():
                kept[index] = model(attacked).argmax(dim=1) == labels[index]
        report(title, min(done + config.batch, len(images)), len(images))
    steps = {"steps": 1, "step": eps, "restarts": 1}
    if name == "pgd":
        steps = {"steps": config.attack_steps, "step": config.attack_step, "restarts": config.restarts}
    return {"attack": name, "norm": "linf", "eps": eps, **steps, "loss": config.attack_loss, **share(kept)}


def share(correct: Tensor) -> dict[str, Any]:
    """How many of how many are right, as a share with its 95% interval."""
    count, right = len(correct), int(correct.sum())
    return {"accuracy": right / count, "interval": wilson(right, count), "correct": right, "images": count}


def wilson(correct: int, count: int) -> list[float]:
    """The 95% interval of a share (Wilson 1927), which holds at 0 and 100% too."""
    z = 1.959963984540054
    p, n = correct / count, count
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [min(p, max(0.0, middle - half)), max(p, min(1.0, middle + half))]


def confusion(labels: Tensor, predicted: Tensor, classes: int) -> list[list[int]]:
    """Row by true class, column by predicted class."""
    return torch.bincount(labels * classes + predicted, minlength=classes**2).view(classes, classes).tolist()


def _mean(values: list[float | None]) -> float | None:
    present = [v for v in values if v is not None]
    return sum(present) / len(present) if present else None
