"""The one pass of the clean images: a network's scores, and of its capsules T and D."""

import dataclasses
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks.gradient import Classifier
from gammacaps.data import StoredImages
from gammacaps.distributed.processes import ALONE, Processes
from gammacaps.metrics import TScore, d_score
from gammacaps.models import CapsuleModel, Model, has_capsules
from gammacaps.progress import OnProgress


@torch.no_grad()
def clean_scores(
    model: Classifier, images: Tensor | StoredImages, batch: int, progress: OnProgress, processes: Processes = ALONE
) -> Tensor:
    """Scores (M, N) of the clean images."""

    def score(start: int) -> Tensor:
        scores = model(images[start : start + batch])
        progress("clean", min(start + batch, len(images)), len(images))
        return scores if processes.count == 1 else scores.cpu()

    return torch.cat(processes.map(score, range(0, len(images), batch)))


@dataclasses.dataclass(frozen=True, eq=False)
class CleanBatch:
    """What one batch shows: its scores, T by layer and class (None: all), the hidden layers' activations."""

    scores: Tensor
    trees: dict[tuple[int, int | None], TScore]
    hidden: list[Tensor]


@torch.no_grad()
def clean_figures(
    model: Model,
    images: Tensor | StoredImages,
    labels: Tensor,
    batch: int,
    progress: OnProgress,
    processes: Processes = ALONE,
) -> tuple[Tensor, dict[str, Any]]:
    """Scores M N, and for capsules T of each routed layer and D of each hidden one, over all and by class."""
    if not has_capsules(model):
        return clean_scores(model, images, batch, progress, processes), {"T": None, "D": None}
    groups: list[int | None] = [None, *range(model.classes)]  # None is all classes together

    def seen(start: int) -> CleanBatch:
        part, own = images[start : start + batch], labels[start : start + batch]
        progress("clean", min(start + batch, len(images)), len(images))
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
        return CleanBatch(
            parse.scores.cpu(),
            {key: tree.cpu() for key, tree in trees.items()},
            [a.cpu() for a in parse.activations[1:-1]],
        )

    batches = processes.map(seen, range(0, len(images), batch))
    trees = dict(batches[0].trees)
    for one in batches[1:]:
        for key, tree in one.trees.items():
            if trees.setdefault(key, tree) is not tree:
                trees[key].merge_state(tree)
    hidden = [torch.cat(layer) for layer in zip(*(one.hidden for one in batches), strict=True)]
    figures = {group: _structure(model, trees, hidden, labels.cpu(), group) for group in groups}
    by_class = [figures[group] for group in range(model.classes)]
    return torch.cat([one.scores for one in batches]), {
        "T": {**figures[None]["T"], "by_class": [each["T"] for each in by_class]},
        "D": {**figures[None]["D"], "by_class": [each["D"] for each in by_class]},
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


def _mean(values: list[float | None]) -> float | None:
    present = [v for v in values if v is not None]
    return sum(present) / len(present) if present else None
