"""Test images as they are and attacked, with a network's answers: one choice for the whole page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gammacaps.data import DataSet
from gammacaps.evaluation.specs import pictured_attack
from gammacaps.models import Model

SHOWN = 10  # images on the first screen
LOOKED = 100  # images of a class among which a rightly answered one is looked for


@dataclass(frozen=True, eq=False)
class Pictured:
    """B test images, the same attacked, and what each is taken for."""

    places: tuple[int, ...]  # in the test set
    labels: tuple[int, ...]
    clean: Tensor  # B C H W
    attacked: Tensor  # B C H W
    answers: tuple[int, ...]
    attacked_answers: tuple[int, ...]
    eps: float


def choose(networks: Sequence[Model], test: DataSet, classes: int) -> list[int]:
    """Places of images in the order of their classes: the first that all networks answer rightly, else the very first.

    Of so many classes, evenly spread; where there are fewer, several of each, SHOWN in all.
    """
    present = test.labels.unique().tolist()
    count = min(classes, len(present))
    each = max(1, SHOWN // count) if count else 0
    places: list[int] = []
    for k in [present[place * len(present) // count] for place in range(count)]:
        own = (test.labels == k).nonzero().squeeze(1)[:LOOKED]
        right = torch.ones(len(own), dtype=torch.bool)
        for network in networks:
            with torch.no_grad():
                images = test.images[own].to(next(network.parameters()).device)
                right &= network(images).argmax(1).cpu() == k
        places += own[right.int().argsort(descending=True, stable=True)[:each]].tolist()
    return places


def picture(
    model: Model, test: DataSet, places: Sequence[int], eps: float, measured: Iterable[dict[str, Any]], *, seed: int
) -> Pictured:
    """These images attacked as they were when the figures were made, where `measured` has a row at this radius."""
    device = next(model.parameters()).device
    images, labels = test.images[list(places)].to(device), test.labels[list(places)].to(device)
    attacked = pictured_attack(measured, eps, model, images, labels, seed=seed)
    with torch.no_grad():
        before, after = (tuple(model(x).argmax(1).tolist()) for x in (images, attacked))
    return Pictured(tuple(places), tuple(labels.tolist()), images, attacked, before, after, eps)
