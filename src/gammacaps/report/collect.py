"""Everything there is to show of a run, worked out once: for the page and for the files of `gammacaps explain`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.data import DataSet, load_set
from gammacaps.environment import describe_machine, pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced
from gammacaps.evaluation.specs import pictured_attack
from gammacaps.explain.activate import Generated, activate_all
from gammacaps.explain.examples import Features, Served, Strongest, classes_served, features, strongest
from gammacaps.explain.filters import Filters, first_filters
from gammacaps.explain.maps import (
    ActivationMap,
    ClassMap,
    Confusion,
    CouplingMap,
    activation_map,
    activations_in_batches,
    class_map,
    confusion_map,
    coupling_map,
)
from gammacaps.explain.nothing import Nothing, none_of_the_above
from gammacaps.explain.reconstruct import Reconstruction, reconstruct
from gammacaps.explain.tree import ParseTree, parse_trees, routing_trees
from gammacaps.models import CapsuleModel, Model, check_fit, load, shows_capsules
from gammacaps.report.config import ReportConfig
from gammacaps.runs.config import RunConfig
from gammacaps.runs.run import AUDIT, EPS, RESULTS, Run

# Generated inputs that a CPU makes in a minute or two for a small network, and the paper's.
ON_CPU, ON_GPU = (10, 200), (60, 1000)
BATCH = 100


@dataclass(frozen=True, eq=False)
class Shown:
    """A capsule with the input that was generated for it."""

    index: int
    generated: Generated
    features: Features
    reached: float  # how long a test image makes it at most


@dataclass(frozen=True, eq=False)
class Pair:
    """One test image, and the same attacked, with both trees."""

    place: int  # in the test set
    label: int
    eps: float
    clean: ParseTree
    attacked: ParseTree


@dataclass(frozen=True, eq=False)
class Collected:
    """A run and what was found in it; what only capsules have is empty where none can be shown."""

    run: Path
    about: RunConfig  # config.json
    results: dict[str, Any] | None  # results.json
    audit: dict[str, Any] | None  # audit.json
    last: dict[str, Any] | None  # the last line of metrics.jsonl
    config: ReportConfig
    machine: dict[str, Any]
    model: Model
    test: DataSet
    examples: Tensor  # N C H W, a training image of each class; black where there is none
    made: tuple[int, int]  # starts and steps of the generated inputs
    capsules: dict[str, list[Shown]]  # by layer, from the hidden ones to the classes
    totals: dict[str, int]  # how many capsules each of these layers has
    beside: list[Shown]  # another network's class capsules
    pairs: list[Pair]
    routing: list[ParseTree]  # the first pair's clean image, by routing's iterations
    strongest: Strongest | None  # the test images that activate the first hidden layer's capsules most
    activation: ActivationMap | None
    means: ClassMap | None
    served: Served | None
    couplings: CouplingMap | None
    confusion: Confusion | None
    filters: Filters
    reconstruction: Reconstruction | None
    nothing: Nothing


def collect(run: Path, config: ReportConfig) -> Collected:
    """Loads a run and looks into it, saying on standard error what it is at."""
    of = Run(run)
    device = pick_device(config.device)
    model = of.model(device)
    train, test = (
        of.load_data(split, config.data, data_dir=config.data_dir, trust=config.trust) for split in ("train", "test")
    )
    check_fit(model, test, "give data like its own with --data")
    # All that is named is loaded before minutes of work.
    others = _others(model, config)
    beside_it = None if config.beside is None or not shows_capsules(model) else _other(model, config.beside)
    results, audit = of_data(of.results(), test, run / RESULTS), of_data(of.audit(), test, run / AUDIT)
    images, labels = balanced(test, config.images)
    names = test.class_names
    starts, steps = ON_CPU if device.type == "cpu" else ON_GPU
    made = (config.starts or starts, config.steps or steps)
    capsules: dict[str, list[Shown]] = {}
    totals: dict[str, int] = {}
    beside: list[Shown] = []
    activation = means = served = couplings = reconstruction = most = None
    pairs: list[Pair] = []
    routing: list[ParseTree] = []
    if shows_capsules(model):
        for layer in model.layers[1:]:
            capsules[layer], totals[layer] = _generated(model, layer, images, made, config)
        if beside_it is not None:
            beside = _generated(beside_it, "class", images, made, config)[0]
        _say("Taking test images apart ...")
        pairs = _pairs(model, test, of.config, config, results)
        if pairs:
            image = test.images[pairs[0].place].to(device)
            routing = routing_trees(model, image, tau=config.tau, class_names=names)
        if len(model.layers) > 2:
            label = int(labels.unique()[0])
            common: dict[str, Any] = {"class_names": names, "batch": BATCH}
            activation = activation_map(model, images, labels, label=label, seed=config.seed, **common)
            means = class_map(model, images, labels, **common)
            served = classes_served(model, images, labels, tau=config.tau, **common)
            couplings = coupling_map(model, images, **common)
            numbers = [shown.index for shown in capsules[model.layers[1]]]
            most = strongest(model, images, model.layers[1], numbers, min(8, len(images)), batch=BATCH)
    examples = _one_of_each(train)
    if capsules and model.reconstructs:
        present = labels.unique().tolist()
        first = torch.stack([images[labels == k][0] for k in present])
        generated = [capsules["class"][k].generated for k in present]
        reconstruction = reconstruct(model, first, torch.tensor(present), generated=generated, class_names=names)
    confusion = confusion_map(results["confusion"], results["class_names"]) if results else None
    _say("Looking at what it makes of noise ...")
    nothing = none_of_the_above(model, others, class_names=names, seed=config.seed)
    return Collected(
        run=run,
        about=of.config,
        results=results,
        audit=audit,
        last=of.last_metrics(),
        config=config,
        machine=describe_machine(str(device)),
        model=model,
        test=test,
        examples=examples,
        made=made,
        capsules=capsules,
        totals=totals,
        beside=beside,
        pairs=pairs,
        routing=routing,
        strongest=most,
        activation=activation,
        means=means,
        served=served,
        couplings=couplings,
        confusion=confusion,
        filters=first_filters(model),
        reconstruction=reconstruction,
        nothing=nothing,
    )


def _other(model: CapsuleModel, name: str) -> CapsuleModel:
    """The network that is shown beside, if it can be."""
    other = load(name, device=next(model.parameters()).device)
    if not shows_capsules(other):
        raise InputError(f"{name} has no capsules that can be shown: name another network with --beside.")
    mine, its = ((each.image_shape, each.classes) for each in (model, other))
    if mine != its:
        raise InputError(
            f"{name} takes images of shape {its[0]} in {its[1]} classes, but the network those of {mine[0]} in "
            f"{mine[1]}: name one like it with --beside."
        )
    return other


def _others(model: Model, config: ReportConfig) -> Tensor | None:
    """Images that the network has no class for, where a set of them is named."""
    if config.others is None:
        return None
    images = load_set(config.others, "test", data_dir=config.data_dir, size=model.image_shape[1]).images
    if tuple(images.shape[1:]) != model.image_shape:
        raise InputError(
            f"The network takes images of shape {model.image_shape}, but those of {config.others} are of "
            f"{tuple(images.shape[1:])}: name other images with --others."
        )
    return images[:200]


def _generated(
    model: CapsuleModel, layer: str, images: Tensor, made: tuple[int, int], config: ReportConfig
) -> tuple[list[Shown], int]:
    """Generated inputs of a layer's capsules, and how many capsules it has."""
    index = model.layers.index(layer)
    activations = torch.cat(list(activations_in_batches(model, index, images, BATCH)))  # M n
    means, most = activations.mean(0), activations.amax(0).tolist()
    total = len(means)
    chosen = list(range(total))
    if layer != "class" and total > config.capsules:
        chosen = sorted(means.argsort(descending=True, stable=True)[: config.capsules].tolist())
    starts, steps = made
    _say(
        f"Generating inputs that activate the {layer} capsules ({len(chosen)} of {total}, {starts} x {steps} steps) ..."
    )
    penalty = config.class_penalty if layer == "class" else config.hidden_penalty
    options: dict[str, Any] = {"starts": starts, "steps": steps, "best": min(5, starts), "penalty": penalty}
    found = activate_all(model, layer, chosen, seed=config.seed, **options)
    return [Shown(j, one, features(one), most[j]) for j, one in zip(chosen, found, strict=True)], total


def _pairs(
    model: CapsuleModel, test: DataSet, about: RunConfig, config: ReportConfig, results: dict[str, Any] | None
) -> list[Pair]:
    """Trees of the first rightly answered test image of some classes, evenly spread, clean and attacked."""
    device = next(model.parameters()).device
    places = []
    present = test.labels.unique().tolist()
    count = min(config.trees, len(present))
    for k in [present[place * len(present) // count] for place in range(count)]:
        own = (test.labels == k).nonzero().squeeze(1)[:BATCH]
        with torch.no_grad():
            right = model(test.images[own].to(device)).argmax(1).cpu() == k
        places.append(int(own[int(right.int().argmax())]))  # the very first where none is right
    if not places:
        return []
    images, labels = test.images[places].to(device), test.labels[places].to(device)
    eps = config.eps if config.eps is not None else about.train.eps if about.train else EPS
    measured = results["attacks"] if results is not None else ()
    attacked = pictured_attack(measured, eps, model, images, labels, seed=config.seed)
    trees = [parse_trees(model, x, tau=config.tau, class_names=test.class_names) for x in (images, attacked)]
    return [
        Pair(place, label, eps, clean, broken)
        for place, label, clean, broken in zip(places, labels.tolist(), *trees, strict=True)
    ]


def _one_of_each(data: DataSet) -> Tensor:
    """The first image of each class."""
    images = torch.zeros(len(data.class_names), *data.images.shape[1:])
    for k in data.labels.unique().tolist():
        images[k] = data.images[data.labels == k][0]
    return images


def of_data(figures: dict[str, Any] | None, test: DataSet, path: Path) -> dict[str, Any] | None:
    """Figures, or None where they are of other data than the report is about."""
    if figures is None:
        return None
    data = figures["data"]
    same = str(test.source) == data["source"] or test.name == data["name"]
    if same and tuple(figures["class_names"]) == tuple(test.class_names):
        return figures
    verb = "evaluate" if path.name == RESULTS else "audit"
    _say(
        f"{path} is left out: its figures are of {data['name']}, and the report is about {test.name}. Give "
        f"--data {data['name']} for a report about that, or measure it with gammacaps {verb} "
        f"{path.parent} --data {test.name}."
    )
    return None


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
