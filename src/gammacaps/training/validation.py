"""Which weights a training keeps: those under which most of the images that were held back stand."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks import pgd
from gammacaps.data import DataSet, StoredSet
from gammacaps.distributed.processes import Processes
from gammacaps.models import Model
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.learner import Best, Learner
from gammacaps.training.schedule import Length
from gammacaps.training.step import precision
from gammacaps.training.watch import TakenStep, Watcher

STEPS = 20  # of each attack
REACH = 2.0  # how many times eps these steps are long in all


class Validation(Watcher):
    """Measures the weights every so often and at the end of training, and remembers the best; of equals the first.

    Not where a training stops to be resumed: so it ends at the same weights as an unbroken one.
    """

    def __init__(self, data: DataSet | StoredSet, length: Length) -> None:
        self.data, self.length = data, length

    def after_step(self, taken: TakenStep) -> None:
        config, learner = taken.config, taken.learner
        if learner.step % config.validate_every and self.length.share(learner) < 1:
            return
        with measured_weights(learner):
            right = share_right(config, learner.model, self.data, taken.images.device, taken.sharing.processes)
        taken.figures["validation"] = right
        if learner.best is None or right > learner.best.right:
            weights = {name: tensor.detach().clone() for name, tensor in learner.weights().items()}
            learner.best = Best(weights, learner.step, right)


@contextlib.contextmanager
def measured_weights(learner: Learner, weights: dict[str, Tensor] | None = None) -> Iterator[None]:
    """Inside the block the network has the weights to use, unless told which; then its own again.

    They lie where its own have lain, and its mode stays, so that what a GPU has recorded of it goes on to hold.
    """
    model = learner.model
    before = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(learner.weights() if weights is None else weights)
    try:
        yield
    finally:
        model.load_state_dict(before)


def share_right(
    config: TrainConfig, model: Model, data: DataSet | StoredSet, device: torch.device, processes: Processes
) -> float:
    """The share of images that are right in the worst case; of a training on clean images, that are right.

    Of several processes each measures whole batches, as one alone would.
    """

    def count(index: Tensor) -> int:
        images, labels = data.images[index].to(device), data.labels[index].to(device)
        start = config.seed * 1_000_003 + 950_021 + int(index[0])
        return int(_right(config, model, images, labels, start).sum())

    # In the size of training's batches, for which its attack is captured already.
    batches = torch.arange(len(data.labels)).split(config.batch)
    return sum(processes.map(count, batches)) / len(data.labels)


def _right(config: TrainConfig, model: Model, images: Tensor, labels: Tensor, seed: int) -> Tensor:
    """Which images (B) are right, and stay so under training's own attack and under one on the cross-entropy."""
    right = _predicted(model, images) == labels
    for loss in dict.fromkeys((config.attack_loss, "ce")) if config.robust else ():
        generator = torch.Generator(images.device).manual_seed(seed)
        size = REACH * config.eps / STEPS
        with precision(config, images.device):
            ways: dict[str, Any] = {"steps": STEPS, "loss": loss, "norm": config.norm, "generator": generator}
            moved = pgd(model, images, labels, eps=config.eps, step=size, **ways)
        right &= _predicted(model, moved) == labels
    return right


@torch.no_grad()
def _predicted(model: Model, images: Tensor) -> Tensor:
    return model(images).argmax(dim=1)
