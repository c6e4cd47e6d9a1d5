"""A run that is looked into: opened and checked before any work, and what several sections show worked out once."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gammacaps.auditing.capsule_names import capsule_names
from gammacaps.auditing.config import AuditConfig
from gammacaps.data import DataSet, load_set
from gammacaps.environment import describe_machine, pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced
from gammacaps.explain.activate import Generated
from gammacaps.explain.batches import activations_in_batches
from gammacaps.explain.examples import Features, features
from gammacaps.explain.kept_inputs import inputs_of, numbers_kept, usual_way
from gammacaps.explain.looks import looks_at, tinted
from gammacaps.explain.steady import noise_for
from gammacaps.models import CapsuleModel, Model, check_fit, load, shows_capsules
from gammacaps.progress import Progress, say, time_left
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.pictured import SHOWN, Pictured, choose, picture
from gammacaps.runs.config import RunConfig
from gammacaps.runs.run import AUDIT, EPS, RESULTS, Run, common_radius

# Generated inputs that a CPU makes in a minute or two for a small network, and the paper's.
ON_CPU, ON_GPU = (10, 200), (60, 1000)
BATCH = 100
REAL = 4  # test images shown beside a generated input
Need = Literal["results", "audit", "capsules"]


@dataclass(frozen=True, eq=False)
class Shown:
    """A capsule with the input that was generated for it."""

    index: int
    generated: Generated
    features: Features
    reached: float  # how long a test image makes it at most
    real: Tensor  # 4 3 H W, the test images that make it longest, tinted where it looks; fewer where there are fewer


@dataclass(frozen=True, eq=False)
class Study:
    """A run with its network and its data. What takes time is worked out when it is first asked for."""

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
    others: Tensor | None  # images that the network has no class for
    beside: CapsuleModel | None  # another network, whose class capsules are shown too
    runs: tuple[Path, ...] = ()  # all that the page is about, where it is about several
    along: tuple[Model, ...] = ()  # the networks of the others, which look at the same images

    def has(self, need: Need) -> bool:
        """Whether the run has what a section can't be without."""
        return {
            "results": self.results is not None,
            "audit": self.audit is not None,
            "capsules": shows_capsules(self.model),
        }[need]

    @property
    def trained_at(self) -> float | None:
        """The radius (L-inf) of the attacks in training, if there were such."""
        train = self.about.train
        return train.eps if train and train.robust and train.norm == "linf" else None

    @property
    def tau(self) -> float:
        """A capsule is active when it is longer, everywhere on the page: the audit's, unless told."""
        audited = AuditConfig().tau if self.audit is None else float(self.audit["tau"])
        return audited if self.config.tau is None else self.config.tau

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @functools.cached_property
    def made(self) -> tuple[int, int]:
        """Starts and steps of the generated inputs: those asked for, else those of the kept ones, if not too few.

        A GPU would take more, but what a shipped network brings is then the same on every machine.
        """
        starts, steps = ON_CPU if self.device.type == "cpu" else ON_GPU
        if self.config.starts is None and self.config.steps is None and shows_capsules(self.model):
            options = {layer: self.how(layer) for layer in self.model.layers[1:]}
            kept = numbers_kept(Run(self.run), self.model, options)
            if kept is not None and kept[0] >= ON_CPU[0] and kept[1] >= ON_CPU[1]:
                return kept
        return self.config.starts or starts, self.config.steps or steps

    def how(self, layer: str) -> dict[str, Any]:
        """How inputs for a layer are searched, besides the starts and steps."""
        config = self.config
        penalty = config.class_penalty if layer == "class" else config.hidden_penalty
        noise = noise_for(self.trained_at)
        return {"penalty": penalty, "search": config.search, "noise": noise, "seed": config.seed}

    @functools.cached_property
    def chosen(self) -> tuple[Tensor, Tensor]:
        """The test images, balanced over the classes, that maps are made of, and their labels."""
        return balanced(self.test, self.config.images)

    @functools.cached_property
    def pictured(self) -> Pictured:
        """Test images, clean and attacked: those of the first screen, of which some have their parse trees shown."""
        say("Attacking a few test images ...")
        config, train = self.config, self.about.train
        places = choose((self.model, *self.along), self.test, max(SHOWN, config.trees))
        eps = config.eps if config.eps is not None else train.eps if train and train.norm == "linf" else EPS
        rows = self.results["attacks"] if self.results is not None else ()
        return picture(self.model, self.test, places, eps, rows, seed=config.seed)

    def active_by_class(self, layer: str) -> tuple[Tensor, float, int]:
        """In what share of each class's images capsules of a layer are active (n N), tau, and the number of images.

        By the audit's tau and images where there is an audit, so that both tell the same.
        """
        assert shows_capsules(self.model)
        tau, (images, labels) = self.tau, self.chosen
        if self.audit is not None:
            tau = self.audit["tau"]
            images, labels = balanced(self.test, min(self.audit["data"]["images"], self.config.images))
        index = self.model.layers.index(layer)
        active = torch.cat(list(activations_in_batches(self.model, index, images, BATCH))) > tau  # M n
        classes = range(len(self.test.class_names))
        return torch.stack([active[labels == k].double().mean(0) for k in classes], dim=1), tau, len(images)

    @functools.cached_property
    def capsules(self) -> dict[str, list[Shown]]:
        """By layer, from the hidden ones to the classes; empty where no capsules can be shown."""
        return {layer: shown for layer, (shown, _) in self._generated.items()}

    @functools.cached_property
    def names(self) -> dict[tuple[int, int], str]:
        """What hidden capsules are called, by the audit or else by what they were trained for."""
        if not shows_capsules(self.model):
            return {}
        layers, sets = self.model.layers, self.about.class_sets
        return capsule_names(layers, self.audit, sets, self.test.class_names, self.test.name)

    @functools.cached_property
    def totals(self) -> dict[str, int]:
        """How many capsules each of these layers has."""
        return {layer: total for layer, (_, total) in self._generated.items()}

    @functools.cached_property
    def _generated(self) -> dict[str, tuple[list[Shown], int]]:
        model = self.model
        return {layer: generate(self, model, layer) for layer in model.layers[1:]} if shows_capsules(model) else {}


def open_study(run: Path, config: ReportConfig) -> Study:
    """Loads a run and all that the options name, before minutes of work."""
    of = Run(run)
    device = pick_device(config.device)
    model = of.model(device)
    train, test = (
        of.load_data(split, config.data, data_dir=config.data_dir, trust=config.trust) for split in ("train", "test")
    )
    check_fit(model, test, "give data like its own with --data")
    return Study(
        run=run,
        about=of.config,
        results=of_data(of.results(), test, run / RESULTS),
        audit=of_data(of.audit(), test, run / AUDIT),
        last=of.last_metrics(),
        config=config,
        machine=describe_machine(str(device)),
        model=model,
        test=test,
        examples=_one_of_each(train),
        others=_others(model, config),
        beside=None if config.beside is None or not shows_capsules(model) else _other(model, config.beside),
    )


def open_pair(runs: Sequence[Path], config: ReportConfig) -> list[Study]:
    """Loads runs that are looked at side by side: on the same data, with the same images under attack of one radius."""
    of = [Run(run) for run in runs]
    data = of[0].data_name(config.data, trust=config.trust)
    eps = common_radius(of) if config.eps is None else config.eps
    studies = [open_study(run, replace(config, data=data, eps=eps)) for run in runs]
    names = [tuple(study.test.class_names) for study in studies]
    if len(set(names)) > 1:
        raise InputError(f"{runs[0]} and {runs[1]} are not about the same classes: name two that are, or give --data.")
    models = [study.model for study in studies]
    return [
        replace(study, runs=tuple(runs), along=tuple(other for other in models if other is not study.model))
        for study in studies
    ]


def generate(study: Study, model: CapsuleModel, layer: str) -> tuple[list[Shown], int]:
    """Generated inputs of a layer's capsules, and how many capsules it has."""
    config, (images, _) = study.config, study.chosen
    index = model.layers.index(layer)
    activations = torch.cat(list(activations_in_batches(model, index, images, BATCH)))  # M n
    means, most = activations.mean(0), activations.amax(0).tolist()
    total = len(means)
    chosen = list(range(total))
    if layer != "class" and total > config.capsules:
        chosen = sorted(means.argsort(descending=True, stable=True)[: config.capsules].tolist())
    starts, steps = study.made
    options = {"starts": starts, "steps": steps, **study.how(layer)}
    say(f"Inputs that activate the {layer} capsules ({len(chosen)} of {total}, {starts} x {steps} steps) ...")
    own = model is study.model
    run = Run(study.run if own else str(config.beside))
    usual = study.how(layer) == usual_way(layer, study.trained_at)  # what is tried for once is not kept
    generated = inputs_of(run, model, layer, chosen, keep=own and usual, on_progress=watch(layer), **options)
    real = real_images(model, layer, images, activations[:, chosen], chosen)
    return [
        Shown(j, one, features(one), most[j], tints) for j, one, tints in zip(chosen, generated, real, strict=True)
    ], total


def watch(layer: str) -> Callable[[int, int], None]:
    """Tells how many of a layer's inputs are generated, and how long the rest will take."""
    progress, started = Progress(every=5.0), time.monotonic()

    def tell(done: int, total: int) -> None:
        left = (time.monotonic() - started) / done * (total - done)
        progress.show(f"Inputs for {layer} capsules: {done}/{total}{time_left(left) if done < total else ''}")

    return tell


def real_images(
    model: CapsuleModel, layer: str, images: Tensor, activations: Tensor, chosen: list[int]
) -> tuple[Tensor, ...]:
    """For each chosen capsule the images that make it longest, tinted where it looks."""
    count = min(REAL, len(images))
    places = activations.argsort(dim=0, descending=True, stable=True)[:count].T.flatten()  # capsules times count
    strongest = images.cpu()[places]
    capsules = [j for j in chosen for _ in range(count)]
    return tinted(strongest, looks_at(model, strongest, layer, capsules, batch=BATCH)).split(count)


def of_data(figures: dict[str, Any] | None, test: DataSet, path: Path) -> dict[str, Any] | None:
    """Figures, or None where they are of other data than the report is about."""
    if figures is None:
        return None
    data = figures["data"]
    same = str(test.source) == data["source"] or test.name == data["name"]
    if same and tuple(figures["class_names"]) == tuple(test.class_names):
        return figures
    verb = "evaluate" if path.name == RESULTS else "audit"
    say(
        f"{path} is left out: its figures are of {data['name']}, and the report is about {test.name}. Give "
        f"--data {data['name']} for a report about that, or measure it with gammacaps {verb} "
        f"{path.parent} --data {test.name}."
    )
    return None


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


def _one_of_each(data: DataSet) -> Tensor:
    """The first image of each class."""
    images = torch.zeros(len(data.class_names), *data.images.shape[1:])
    for k in data.labels.unique().tolist():
        images[k] = data.images[data.labels == k][0]
    return images
