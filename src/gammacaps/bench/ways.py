"""The ways to compute a pass. Each function here prepares one, and returns the call that is timed."""

import contextlib
import copy
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from gammacaps.attacks.fast import BATCHES, fast_attack
from gammacaps.attacks.losses import margin
from gammacaps.models import GammaCapsNet, Model
from gammacaps.nn import RoutedCapsules, layers_of
from gammacaps.nn.deep import PaddedConvolution
from gammacaps.nn.vector import Convolution
from gammacaps.ops import Routed, length, route, rule_named
from gammacaps.ops.routing.rules import route_by_formula
from gammacaps.replay.recording import Recording
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.execution import deterministic
from gammacaps.training.learner import new_learner
from gammacaps.training.recorded_losses import recorded_losses
from gammacaps.training.sharing import Sharing
from gammacaps.training.step import Objective, precision, take_step

Call = Callable[[], tuple[Tensor, ...]]
Network = TypeVar("Network", bound=nn.Module)


class FixedCapsules(RoutedCapsules):
    """Routed by one backend of `route` on any device, or by its rule's formula under autograd.

    The formulas are for torch.compile, which stops short of the plain backend's gradient, as that is written out.
    """

    backend: str

    def forward(self, poses: Tensor, couplings: bool = False) -> Routed:
        if self.backend != "formulas":
            how: dict[str, Any] = {"rule": self.rule, "iterations": self.iterations, "scale_over": self.scale_over}
            return route(poses, self.weight, self.bias, **how, couplings=couplings, backend=self.backend)
        with torch.autocast(poses.device.type, enabled=False):
            layer = (self.weight, self.bias, self.iterations, self.scale_over)
            return Routed(route_by_formula(rule_named(self.rule), poses, *layer)[0], None)


def routed_by(backend: str, model: Network) -> Network:
    """A copy of the model in which all routing goes one way."""
    copied = copy.deepcopy(model)
    for layer in layers_of(copied, RoutedCapsules):
        layer.__class__ = FixedCapsules
        layer.backend = backend  # type: ignore[assignment]
    return copied


def by_library(model: Network) -> Network:
    """A copy that uses nothing of ours on a CPU: routing by its formula under autograd, the library's convolutions."""
    copied = routed_by("formulas", model)
    for module in copied.modules():
        if isinstance(module, Convolution | PaddedConvolution):
            module.__class__ = nn.Conv2d  # type: ignore[assignment]
    return copied


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled as one graph for these very shapes, or not at all."""
    torch._dynamo.config.recompile_limit = 64  # a function is compiled anew for each size of batch
    return torch.compile(function, fullgraph=True, dynamic=False)


def network(
    model: Model, images: Tensor, labels: Tensor, *, gradient: bool, low: bool = False, compile: bool = False
) -> Call:
    """Scores (B, N) and, where asked for, the margin's gradient of the images (B, C, H, W); weights are frozen."""
    by_parts = compile and (model := copy.deepcopy(model)).compile_routing()

    def rate(points: Tensor) -> tuple[Tensor, Tensor]:
        scores = model(points)
        return scores, margin(scores, labels).sum() if gradient else scores

    rating = compiled(rate) if compile and not by_parts else rate

    def run() -> tuple[Tensor, ...]:
        points = images.detach().requires_grad_(gradient)
        with torch.set_grad_enabled(gradient), torch.autocast(images.device.type, torch.bfloat16, enabled=low):
            scores, total = rating(points)
        return (scores.detach(), *torch.autograd.grad(total, points)) if gradient else (scores,)

    return run


def routing(layer: nn.Module, poses: Tensor, grad: Tensor, *, compile: bool = False) -> Call:
    """Upper poses (B, J, D), and the gradients of the lower ones (B, I, d) and of the weights that aren't frozen."""
    up = compiled(lambda leaf: layer(leaf).poses) if compile else lambda leaf: layer(leaf).poses
    learning = [p for p in layer.parameters() if p.requires_grad]

    def run() -> tuple[Tensor, ...]:
        leaf = poses.detach().requires_grad_()
        v = up(leaf)
        return v.detach(), *torch.autograd.grad(v, (leaf, *learning), grad)

    return run


def network_engine(model: GammaCapsNet, images: Tensor, labels: Tensor, *, gradient: bool) -> Call:
    """The fast attack's network, with the margin's gradient or without; the batch is filled up as the attack does."""
    from gammacaps.models.frozen import FrozenNetwork
    from gammacaps.ops.kernels.capsules import margin_gradient

    count = len(images)
    batch = -(-count // BATCHES) * BATCHES
    network = FrozenNetwork(model, batch, torch.bfloat16)
    x = torch.cat((images, images.new_zeros(batch - count, *images.shape[1:])))
    goal = torch.cat((labels, labels.new_zeros(batch - count)))

    def step() -> tuple[Tensor, ...]:
        v = network.forward(x)
        if not gradient:
            return (length(v)[:count],)
        return length(v)[:count], network.backward(margin_gradient(v, goal, 1.0)[1])[:count]

    return Recording(step, images.device).replay


def routing_engine(layer: RoutedCapsules, poses: Tensor, grad: Tensor) -> Call:
    """The kernels that route by frozen weights."""
    from gammacaps.models.frozen import FrozenLayer

    kernels = FrozenLayer(layer, len(poses))
    return Recording(lambda: (kernels.forward(poses), kernels.backward(grad)), poses.device).replay


def plainly(prepare: Callable[[], Call]) -> Call:
    """What is prepared, and then run, without kernels of our own."""
    with attacked_by(plain=True):
        step = prepare()

    def run() -> tuple[Tensor, ...]:
        with attacked_by(plain=True):
            return step()

    return run


def training_step(
    config: TrainConfig, model: Model, images: Tensor, labels: Tensor, progress: float, *, plain: bool
) -> Call:
    """A step of training under attack, of a copy of the model: how the images were changed, and the loss."""
    model = copy.deepcopy(model).requires_grad_(True).train()
    learner = new_learner(dataclasses.replace(config, ema=0.0), model, images.device)
    with attacked_by(plain), precision(config, images.device):
        if not plain and fast_attack(model, images, config.attack_loss, "linf", False) is None:
            raise RuntimeError("the fast attack can't run here")

    objective = Objective(config, model)
    with attacked_by(plain):
        recorded = recorded_losses(objective, model, images.device)
    sharing = Sharing(objective, len(images), recorded=recorded)

    def run() -> tuple[Tensor, ...]:
        with attacked_by(plain), deterministic():
            losses, _, attacked = take_step(config, learner, images, labels, progress, sharing)
        return attacked - images, losses["loss"]

    return run


@contextlib.contextmanager
def attacked_by(plain: bool) -> Iterator[None]:
    """Inside the block PGD is the plain one, or else the fast one, whatever the environment said."""
    before = os.environ.get("GAMMACAPS_PLAIN", "")
    os.environ["GAMMACAPS_PLAIN"] = "1" if plain else ""
    try:
        yield
    finally:
        os.environ["GAMMACAPS_PLAIN"] = before
