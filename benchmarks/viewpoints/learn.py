"""One training on some viewpoints, measured along its way on these and on others."""

import time
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from gammacaps.data.viewpoints import ToyImages, ViewpointSplit
from gammacaps.environment import pick_device
from gammacaps.models import Model
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.batches import batches
from gammacaps.training.learner import new_learner
from gammacaps.training.loop import take_steps
from gammacaps.training.new_model import new_model
from gammacaps.training.schedule import Length
from gammacaps.training.sharing import Sharing
from gammacaps.training.signals import StopRequests
from gammacaps.training.step import Objective
from gammacaps.training.validation import measured_weights
from gammacaps.training.watch import TakenStep, Watcher

AT_ONCE = 50  # images measured at once: EM routing is slow with more on a CPU


@dataclass(frozen=True)
class Network:
    """A preset, its routing and what is changed of it."""

    preset: Literal["small", "deep", "matrix", "cnn"]
    routing: str = "sda"  # of vector capsules; the others have their own
    changes: tuple[str, ...] = ()


# Without decoders, which a CNN and EM routing do not have; SDA, RBA and the CNN have the same convolutions.
SMALL = {
    "SDA": Network("small", changes=("decoder=[]",)),
    "RBA": Network("small", "rba", changes=("decoder=[]",)),
    "EM": Network("matrix", changes=("filters=32", "primary_types=4", "types=[6,6]", "iterations=2")),
    "CNN": Network("cnn", changes=("stem=deep", "deep_filters=16", "width=128")),
}
LARGE = {
    "SDA": Network("deep", changes=("decoder=[]",)),
    "RBA": Network("deep", "rba", changes=("decoder=[]",)),
    "EM": Network("matrix"),
    "CNN": Network("cnn", changes=("stem=deep",)),
}


def config_of(network: Network, *, steps: int, batch: int, seed: int, device: str) -> TrainConfig:
    """Training on clean images that are moved and change their light a little, as in the experiment of 2018."""
    return TrainConfig(
        data="smallnorb",
        preset=network.preset,
        routing=network.routing,
        model=network.changes,
        robust=False,
        gamma=0.0,
        shift=2,
        brightness=0.1,
        contrast=0.2,
        steps=steps,
        batch=batch,
        seed=seed,
        device=device,
    )


class Measured(Watcher):
    """How many images of each toy are right, every so many steps and at the end."""

    def __init__(self, parts: dict[str, ToyImages], every: int) -> None:
        self.parts, self.every = parts, every
        self.curve: list[dict[str, Any]] = []

    def after_step(self, taken: TakenStep) -> None:
        if not taken.due(self.every):
            return
        with measured_weights(taken.learner):
            right = {name: by_toy(taken.learner.model, part) for name, part in self.parts.items()}
        self.curve.append({"step": taken.learner.step, **right})


@torch.no_grad()
def by_toy(model: Model, part: ToyImages) -> list[int]:
    """Right answers to the images of each toy, in the order of the toys' numbers."""
    device = next(model.parameters()).device
    answers = [model(images.to(device)).argmax(dim=1).cpu() for images in part.data.images.split(AT_ONCE)]
    right = torch.cat(answers) == part.data.labels
    return [int(right[part.toys == toy].sum()) for toy in part.toys.unique()]


def some(part: ToyImages, images: int | None, seed: int) -> ToyImages:
    """So many images, drawn by the seed, of each toy alike; all where there are no more."""
    toys = part.toys.unique()
    if images is None or images >= len(part.toys):
        return part
    generator = torch.Generator().manual_seed(seed)
    chosen: list[Tensor] = []
    for toy in toys:
        places = (part.toys == toy).nonzero().squeeze(1)
        chosen.append(places[torch.randperm(len(places), generator=generator)[: max(1, images // len(toys))]])
    index, data = torch.cat(chosen), part.data
    drawn = type(data)(data.images[index], data.labels[index], data.class_names, data.name, data.source)
    return ToyImages(drawn, part.toys[index])


def learn(config: TrainConfig, split: ViewpointSplit, parts: dict[str, ToyImages], every: int) -> dict[str, Any]:
    """Trains, and gives the curve of right answers to each of the parts."""
    device, started = pick_device(config.device), time.monotonic()
    data = split.train.data
    model = new_model(config, data).to(device).train()
    learner = new_learner(config, model, device)
    sharing = Sharing(Objective(config, model), min(config.batch, len(data.labels)))
    measured = Measured(parts, every)
    coming = batches(data, config, sharing.own, device, 0)
    if device.type == "cuda":
        model.compile_routing()
    take_steps(config, learner, coming, sharing, Length(config.steps, None), StopRequests(), [measured])
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "train_images": len(data.labels),
        "toys": {name: part.toys.unique().tolist() for name, part in parts.items()},
        "toy_images": {
            name: [int((part.toys == toy).sum()) for toy in part.toys.unique()] for name, part in parts.items()
        },
        "curve": measured.curve,
        "seconds": round(time.monotonic() - started, 1),
    }
