"""The networks that a page shows: their weights, images to pick from, and what an audit found."""

import contextlib
import dataclasses
import functools
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.auditing.capsule_names import capsule_names
from gammacaps.data import MINI, DataSet, StoredSet, find, open_set
from gammacaps.data import names as data_names
from gammacaps.data.checks import Size
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced_places
from gammacaps.explain.batches import BATCH
from gammacaps.explain.without_each import accuracies_without_each, can_switch_off
from gammacaps.explorer import drawn_digits, drawn_toys
from gammacaps.explorer.config import ExploreConfig
from gammacaps.models import CapsuleModel, Model, check_fit, has_capsules, shows_capsules
from gammacaps.models.shipped import stored_at
from gammacaps.runs.config import RunConfig
from gammacaps.runs.inputs import LayerInputs
from gammacaps.runs.run import EPS, Run

USUAL = "fashion-mini"  # shown where no run is named
IMAGES = 500  # of the test set, balanced over the classes, to pick from
TAU = 0.1
MOST_OFF = 128  # capsules of a layer that are switched off one by one for all images


@dataclass(frozen=True, eq=False)
class Network:
    """One network and all that the page may ask about it."""

    name: str
    given: str  # the folder or name as it was given, which other verbs take too
    model: Model
    about: RunConfig  # config.json
    class_names: tuple[str, ...]
    images: Tensor  # M C H W
    labels: Tensor  # M
    labelled: bool  # whether the labels are of the network's own classes, and not of another set's
    source: str  # the name of the data set that these are of
    missing: str  # why there are no images; empty where there are
    audit: dict[str, Any] | None  # audit.json
    trees: bool  # whether it has capsules that can be shown
    counts: tuple[int, ...]  # capsules in each layer
    eps: float  # the radius that it was trained at, or a usual one
    radius: float | None = None  # the former alone
    inputs: Mapping[str, LayerInputs] = field(default_factory=dict)  # generated before, by layer
    accuracies: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # by layer, of `without`
    note: str = ""  # what is to be known of the images
    working: threading.Lock = field(default_factory=threading.Lock)

    @property
    def capsules(self) -> CapsuleModel:
        if not has_capsules(self.model) or not self.trees:
            raise InputError(f"{self.name} has no capsules that can be shown: ask for its scores or an attack.")
        return self.model

    @property
    def tau(self) -> float:
        """Above which length the page calls a capsule active at first: what its audit does, or the usual."""
        return float(self.audit["tau"]) if self.audit else TAU

    @functools.cached_property
    def names(self) -> dict[tuple[int, int], str]:
        """What hidden capsules are called, by the audit or else by what they were trained for; by layer and capsule."""
        if not self.trees:
            return {}
        shown = self.source if self.labelled else None
        data = self.audit["data"]["name"] if self.audit else self.about.data.name or shown
        return capsule_names(self.capsules.layers, self.audit, self.about.class_sets, self.class_names, data)

    def without(self, layer: int) -> tuple[Tensor, Tensor] | None:
        """The share of each class (N) that is right, and without each capsule of a hidden layer (I N); None elsewhere.

        Worked out for the whole layer at the first use, since what lies below it is then passed once.
        """
        hidden = 0 < layer < len(self.counts) - 1
        if not hidden or not self.labelled or self.missing or self.counts[layer] > MOST_OFF:
            return None
        if not can_switch_off(self.model):
            return None
        with self.working:  # several people may ask for it at once
            if layer not in self.accuracies:
                every = range(self.counts[layer])
                self.accuracies[layer] = accuracies_without_each(self.model, layer, every, self.images, self.labels)
        return self.accuracies[layer]

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
    folders = [stored_at(name) for name in names or (USUAL,)]  # which are only read
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError(f"{names[0]} and {names[1]} are the same network: name it once, or another beside it.")
    networks = [
        load_network(folder, config, given=name) for folder, name in zip(folders, names or (USUAL,), strict=True)
    ]
    if len(networks) < 2:
        return networks
    first, second = networks
    if first.name == second.name:  # in two folders
        first, second = (dataclasses.replace(network, name=network.given) for network in networks)
    shapes = [network.model.image_shape for network in networks]
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
    same = {name: getattr(first, name) for name in ("images", "labels", "labelled", "source", "missing", "note")}
    return [first, dataclasses.replace(second, **same)]


def load_network(run: Path, config: ExploreConfig, given: str | None = None) -> Network:
    of = Run(run)
    device = pick_device(config.device)
    model = of.model(device)
    model.requires_grad_(False)  # for good, since several threads use the weights at once
    data, missing = images_for(of, model, config)
    recorded = of.config.data.class_names
    # What the network answers are the classes that it was trained for, whichever images it is shown.
    unnamed = data.class_names if data else range(model.classes)
    names = tuple(map(str, recorded or unnamed))
    images, labels = some_of(data) if data else (torch.zeros(0, *model.image_shape), torch.zeros(0))
    return Network(
        name=run.resolve().name,
        given=given or str(run),
        model=model,
        about=of.config,
        class_names=names,
        images=images.to(device),
        labels=labels.to(device, torch.int64),
        labelled=data is not None and tuple(data.class_names) == names,
        source=data.name if data else "",
        missing="" if data else missing,
        note=f"{what_is_drawn(data)} drawn for this page. {missing}" if data and missing else "",
        audit=of.audit(),
        trees=shows_capsules(model),
        counts=model.counts() if shows_capsules(model) else (),
        eps=of.radius or EPS,
        radius=of.radius,
        inputs=of.inputs(),
    )


def images_for(run: Run, model: Model, config: ExploreConfig) -> tuple[DataSet | StoredSet | None, str]:
    """Test images for a network, never downloaded unless named, and why there are none.

    Where its own data set is not on this machine, the embedded sample serves for networks of the same classes, and
    digits or toys drawn for the page for those of MNIST and smallNORB: then it is told too why these are there.
    """
    data_dir, size = run.data_dir(config.data_dir), run.size
    if config.data is not None:
        return fitting(model, config.data, data_dir, size), ""
    name, missing = None, f"{run.folder} does not say what it was trained on: name a data set with --data."
    if run.names_data:
        name = run.data_name(trust=config.trust)
        fetch = f"gammacaps data {name} fetches them" if name in data_names() else "tell where with --data"
        missing = f"The images of {name} are not on this machine: {fetch}, then start the explorer again."
    if name is not None and is_here(name, data_dir):
        try:
            return fitting(model, name, data_dir, size, skip_unreadable=run.skip_unreadable), ""
        except InputError as error:  # broken, or of another shape by now: the page works without them, and says why
            missing = str(error)
            print(f"Note: {missing}", file=sys.stderr)
    with contextlib.suppress(InputError):
        sample = fitting(model, MINI)
        if run.config.data.class_names == tuple(sample.class_names):
            return sample, ""
    if model.image_shape == (1, drawn_digits.SIDE, drawn_digits.SIDE):
        if run.config.data.class_names == drawn_digits.CLASSES:
            return drawn_digits.drawn_digits(), missing
        if run.config.data.class_names == drawn_toys.CLASSES:
            return drawn_toys.drawn_toys(), missing
    return None, missing


def what_is_drawn(data: DataSet | StoredSet) -> str:
    """Of "drawn toys" "Toys"."""
    return data.name.removeprefix("drawn ").capitalize()


def is_here(name: str, data_dir: str | None) -> bool:
    try:
        return find(name, data_dir) is not None
    except InputError:  # a path at which nothing is any more
        return False


def fitting(
    model: Model, name: str, data_dir: str | None = None, size: Size = None, *, skip_unreadable: bool = False
) -> DataSet | StoredSet:
    data = open_set(name, "test", data_dir=data_dir, size=size, skip_unreadable=skip_unreadable)
    check_fit(model, data)
    return data


def some_of(data: DataSet | StoredSet) -> tuple[Tensor, Tensor]:
    """Images to pick from with their labels; of those on disk no others are read."""
    places = balanced_places(data, IMAGES)
    images = data.images.at(places)[:] if isinstance(data, StoredSet) else data.images[places]
    return images, data.labels[places]
