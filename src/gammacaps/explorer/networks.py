"""The networks that a page shows: their weights, images to pick from, and what an audit found."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.data import MINI, DataSet, find, load_set
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced
from gammacaps.explain.maps import BATCH
from gammacaps.explorer.config import ExploreConfig
from gammacaps.models import CapsuleModel, Model, load
from gammacaps.models.shipped import run_folder
from gammacaps.models.stored import read_config
from gammacaps.report.collect import depends_on_neighbours, figures_of

USUAL = "fashion-mini"  # shown where no run is named
IMAGES = 500  # of the test set, balanced over the classes, to pick from
TAU = 0.1
EPS = 0.1  # where the run does not say what it was trained at


@dataclass(frozen=True, eq=False)
class Network:
    """One network and all that the page may ask about it."""

    name: str
    model: Model
    stored: dict[str, Any]  # config.json
    class_names: tuple[str, ...]
    images: Tensor  # M C H W
    labels: Tensor  # M
    source: str  # the name of the data set that these are of
    missing: str  # why there are no images; empty where there are
    audit: dict[str, Any] | None  # audit.json
    trees: bool  # whether it has capsules that can be shown
    counts: tuple[int, ...]  # capsules in each layer

    @property
    def capsules(self) -> CapsuleModel:
        if not isinstance(self.model, CapsuleModel) or not self.trees:
            raise InputError(f"{self.name} has no capsules that can be shown: ask for its scores or an attack.")
        return self.model

    @functools.cached_property
    def eps(self) -> float:
        training = self.stored.get("train", {})
        return float(training.get("eps") or EPS) if training.get("robust") else EPS

    @functools.cached_property
    def lengths(self) -> list[Tensor]:
        """The activations (M, I) of each layer's capsules by all images, from one pass at the first use."""
        with torch.no_grad():
            parts = [self.capsules.parse(part, couplings=False).activations for part in self.images.split(BATCH)]
        return [torch.cat(layer).cpu() for layer in zip(*parts, strict=True)]


def load_networks(names: Sequence[str], config: ExploreConfig) -> list[Network]:
    """The networks of one page, by a run's folder or a shipped name each: at most two, shown the same images."""
    if len(names) > 2:
        raise InputError(f"The page shows one network or two side by side, not {len(names)}: name fewer.")
    networks = [load_network(run_folder(name), config) for name in names or (USUAL,)]
    if len(networks) < 2:
        return networks
    first, second = networks
    shapes = [network.model.config.image_shape for network in networks]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"{first.name} takes images of shape {shapes[0]} and {second.name} of {shapes[1]}: "
            "two networks can be shown side by side only on the same images."
        )
    if first.class_names != second.class_names:
        raise InputError(
            f"{first.name} and {second.name} have different classes ({', '.join(first.class_names[:3])}, ... and "
            f"{', '.join(second.class_names[:3])}, ...): show them one at a time."
        )
    # They may come from two data sets of these classes, but a number must mean the same image to both.
    same = {name: getattr(first, name) for name in ("images", "labels", "source", "missing")}
    return [first, dataclasses.replace(second, **same)]


def load_network(run: Path, config: ExploreConfig) -> Network:
    stored = read_config(run)
    device = pick_device(config.device)
    model = load(run, device=device)
    model.requires_grad_(False)  # for good, since several threads use the weights at once
    data, missing = images_for(run, model, stored, config)
    recorded = stored.get("data", {}).get("class_names")
    names = data.class_names if data else tuple(map(str, recorded or range(model.config.classes)))
    images, labels = balanced(data, IMAGES) if data else (torch.zeros(0, *model.config.image_shape), torch.zeros(0))
    trees = isinstance(model, CapsuleModel) and not depends_on_neighbours(model)
    return Network(
        name=run.resolve().name,
        model=model,
        stored=stored,
        class_names=names,
        images=images.to(device),
        labels=labels.to(device, torch.int64),
        source=data.name if data else "",
        missing=missing,
        audit=figures_of(run / "audit.json"),
        trees=trees,
        counts=counts_of(model) if trees and isinstance(model, CapsuleModel) else (),
    )


@torch.no_grad()
def counts_of(model: CapsuleModel) -> tuple[int, ...]:
    black = torch.zeros(1, *model.config.image_shape).to(next(model.parameters()))
    return tuple(activations.shape[1] for activations in model.parse(black, couplings=False).activations)


def images_for(run: Path, model: Model, stored: dict[str, Any], config: ExploreConfig) -> tuple[DataSet | None, str]:
    """Test images for a network, never downloaded, and why there are none.

    Where its own data set is not on this machine, the embedded sample serves for networks of the same classes.
    """
    training = stored.get("train", {})
    name = config.data or training.get("data")
    data_dir, size = config.data_dir or training.get("data_dir"), training.get("size")
    if config.data is not None:
        data = load_set(config.data, "test", data_dir=data_dir, size=size)
        if not fits(model, data):
            raise InputError(
                f"The network in {run} takes images of shape {model.config.image_shape} in {model.config.classes} "
                f"classes, but those of {data.name} are of {tuple(data.images.shape[1:])} in "
                f"{len(data.class_names)}: give data like its own with --data."
            )
        return data, ""
    try:
        if name is not None and find(name, data_dir) is not None:
            data = load_set(name, "test", data_dir=data_dir, size=size)
            if fits(model, data):
                return data, ""
    except InputError:
        pass  # the data have moved or are broken: the page works without them
    sample = load_set(MINI, "test")
    if fits(model, sample) and stored.get("data", {}).get("class_names") == list(sample.class_names):
        return sample, ""
    if name is None:
        return None, "This network does not say what it was trained on: name a data set with --data."
    return None, f"The images of {name} are not on this machine: gammacaps data {name} looks for them."


def fits(model: Model, data: DataSet) -> bool:
    return tuple(data.images.shape[1:]) == model.config.image_shape and len(data.class_names) == model.config.classes
