"""What is measured: tasks, each with the ways to do it and the same by plain ops in full precision."""

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gammacaps.attacks import pgd
from gammacaps.bench import ways
from gammacaps.bench.config import TaskName
from gammacaps.bench.ways import Call, routed_by
from gammacaps.models import Model, create, has_kernels
from gammacaps.nn import RoutedCapsules, layers_of
from gammacaps.ops import squash
from gammacaps.replay.recording import Recording
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.step import attack, precision

TITLES: dict[TaskName, str] = {
    "forward": "forward",
    "attack": "attack pass",
    "training": "PGD-40 training step",
    "routing": "routing layer 1",
    "many": "many classes",
    "matrix": "matrix capsules",
    "pgd": "PGD-40",
    "short-training": "PGD-10 training step",
    "autoattack": "AutoAttack",
    "audit": "audit",
}
EPS, FEW_STEPS = 0.3, 10
# Where in training a step is taken: the attack's radius is full-grown by then.
PROGRESS = 0.75


@dataclass(frozen=True)
class BenchTask:
    """A computation: `ways` to prepare it, and what it must give."""

    name: TaskName
    network: str
    batch: int
    ways: Mapping[str, Callable[[], Call]]
    exact: Call
    outputs: tuple[str, ...]
    low: bool = False  # whether the ways compute in bfloat16
    labels: Tensor | None = None  # where the second output is the gradient of a margin
    not_counted: int = 0  # bytes that a way gives back, beside those that it needs
    on_cpu: Mapping[str, Callable[[], Call]] | None = None  # the ways of a CPU, where it has code of its own


def task_of(name: TaskName, preset: str, model: Model, batch: int, low: bool) -> BenchTask:
    """A task for a network whose weights are frozen; `low` for convolutions in bfloat16.

    Whole attacks and short training steps are those of a new network, of the preset.
    """
    torch.manual_seed(0)
    if name in ("pgd", "short-training"):
        model = create(preset).to(next(model.parameters()).device).requires_grad_(False)
    with (device := next(model.parameters()).device):
        if name == "many":
            return many_task(batch, RoutedCapsules(1152, 1000, 8, 16))
        if name == "routing":
            return routing_task(preset, layers_of(model, RoutedCapsules)[0], batch)
        images = torch.rand(batch, *model.image_shape)
        labels = torch.randint(model.classes, (batch,))
    if name == "pgd":
        return pgd_task(preset, model, images, labels)
    if name in ("training", "short-training"):
        config = TrainConfig(batch=batch)
        if name == "short-training":
            config = dataclasses.replace(config, attack_steps=FEW_STEPS, attack_step=0.4 / FEW_STEPS)
        return training_task(name, preset, config, model, images, labels)
    plain, gradient = routed_by("torch", model), name != "forward"
    outputs = ("scores", "image gradient") if gradient else ("scores",)
    run = partial(ways.network, images=images, labels=labels, gradient=gradient)
    if name == "matrix":
        matrix = create("matrix", iterations=2).to(device).requires_grad_(False)
        by_em: dict[str, Callable[[], Call]] = {
            "eager": partial(ways.plainly, partial(run, matrix, low=low)),
            "compiled": partial(ways.plainly, partial(run, matrix, low=low, compile=True)),
            "engine": lambda: Recording(run(matrix, low=low), images.device).replay,
        }
        exact = run(copy.deepcopy(matrix).double(), images=images.double())
        return BenchTask(name, name, batch, by_em, exact, outputs, low, labels)
    prepare: dict[str, Callable[[], Call]] = {
        "eager": partial(run, plain, low=low),
        "compiled": partial(run, routed_by("formulas", model), low=low, compile=True),
    }
    if has_kernels(model):
        prepare["engine"] = partial(ways.network_engine, model, images, labels, gradient=gradient)
    exact = run(copy.deepcopy(plain).double(), images=images.double())
    on_cpu = {"eager": partial(run, ways.by_library(model)), "engine": partial(run, model)}
    return BenchTask(name, preset, batch, prepare, exact, outputs, low, labels, on_cpu=on_cpu)


def routing_task(preset: str, layer: RoutedCapsules, batch: int) -> BenchTask:
    """One layer alone, in float32, its weights frozen."""
    I, J, d, D = layer.weight.shape
    given = squash(torch.randn(batch, I, d)), torch.randn(batch, J, D)
    prepare: dict[str, Callable[[], Call]] = {
        "eager": partial(ways.routing, routed_by("torch", layer), *given),
        "compiled": partial(ways.routing, routed_by("formulas", layer), *given, compile=True),
        "engine": partial(ways.routing_engine, layer, *given),
    }
    exact = ways.routing(routed_by("torch", layer).double(), *(tensor.double() for tensor in given))
    on_cpu = {
        "eager": partial(ways.routing, ways.by_library(layer), *given),
        "engine": partial(ways.routing, layer, *given),
    }
    return BenchTask("routing", preset, batch, prepare, exact, ("upper poses", "pose gradient"), on_cpu=on_cpu)


def many_task(batch: int, layer: RoutedCapsules) -> BenchTask:
    """One layer with all gradients; it is held against float32, as the votes in float64 would take 10 GB."""
    I, J, d, D = layer.weight.shape
    given = squash(torch.randn(batch, I, d)), torch.randn(batch, J, D)
    engine, exact = (ways.routing(routed_by(backend, layer), *given) for backend in ("triton", "torch"))
    outputs = ("upper poses", "pose gradient", "weight gradient", "bias gradient")
    size = sum(p.numel() * p.element_size() for p in layer.parameters())
    return BenchTask(
        "many", f"I={I} d={d} J={J} D={D}", batch, {"engine": lambda: engine}, exact, outputs, not_counted=size
    )


def pgd_task(preset: str, model: Model, images: Tensor, labels: Tensor) -> BenchTask:
    """A whole attack; how it changes the images is held against one in float32."""

    def attacked(plain: bool, low: bool) -> tuple[Tensor, ...]:
        half = precision(TrainConfig(), images.device) if low else contextlib.nullcontext()
        with ways.attacked_by(plain), half:
            return (pgd(model, images, labels, eps=EPS, step=0.01, random_start=False) - images,)

    prepare: dict[str, Callable[[], Call]] = {
        "eager": lambda: partial(attacked, True, True),
        "engine": lambda: partial(attacked, False, True),
    }
    outputs = ("change of the images",)
    return BenchTask("pgd", preset, len(images), prepare, partial(attacked, True, False), outputs, low=True)


def training_task(
    name: TaskName, preset: str, config: TrainConfig, model: Model, images: Tensor, labels: Tensor
) -> BenchTask:
    """A step as `gammacaps train` takes it; its attack is held against one in float32."""
    plain = routed_by("torch", model)

    def exact() -> tuple[Tensor, ...]:
        with ways.attacked_by(plain=True):
            return (attack(config, plain, images, labels, 0, PROGRESS, None) - images,)

    step = partial(ways.training_step, config, images=images, labels=labels, progress=PROGRESS)
    prepare: dict[str, Callable[[], Call]] = {
        "eager": partial(step, plain, plain=True),
        "engine": partial(step, model, plain=False),
    }
    return BenchTask(name, preset, len(images), prepare, exact, ("change of the images", "loss"), low=True)
