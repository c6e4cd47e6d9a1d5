"""PGD on a gamma-capsule network at the speed of the GPU: Triton kernels in a CUDA graph, weights frozen.

One step of the attack is captured once for each size of batch and replayed as often as there are steps; the host waits
for nothing in between. Where this can't run, `fast_attack` says why, and the plain attack is used.
"""

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.attacks.losses import LOSSES, AttackLoss
from gammacaps.models import GammaCapsNet, has_kernels
from gammacaps.nn.vector import why_no_kernels
from gammacaps.ops import length
from gammacaps.ops.routing.choice import plain_wanted

# Batches are filled up to a multiple of this, so that few sizes need a graph of their own.
BATCHES = 64
# Graphs kept for a model; each holds the memory of a pass.
GRAPHS = 6


class FastAttack:
    """The steps of PGD in the L-inf ball for batches of one size, in memory that is used again at every call."""

    def __init__(self, model: GammaCapsNet, batch: int, dtype: torch.dtype, loss: str | AttackLoss, stay: bool) -> None:
        from gammacaps.models.frozen import FrozenNetwork

        device = next(model.parameters()).device
        self.network, self.loss, self.stay, self.batch = FrozenNetwork(model, batch, dtype), loss, stay, batch
        shape = (batch, *model.image_shape)
        self.x, self.low, self.high = (torch.zeros(shape, device=device) for _ in range(3))
        self.labels = torch.zeros(batch, dtype=torch.int64, device=device)
        self.size, self.sign = torch.zeros(1, device=device), 1.0
        self.weights, self.classes = addresses(model), model.classes
        self.graph: torch.cuda.CUDAGraph | None = None

    def run(
        self, start: Tensor, low: Tensor, high: Tensor, labels: Tensor, size: float, steps: int, sign: float
    ) -> Tensor:
        """`steps` steps of `size` from `start`, up the loss for sign 1, down for sign -1."""
        if sign != self.sign:
            self.sign, self.graph = sign, None
        for mine, given in ((self.x, start), (self.low, low), (self.high, high), (self.labels, labels)):
            mine[: len(given)].copy_(given)
        self.size.fill_(size)
        self.network.refresh()
        if self.x.is_cuda and isinstance(self.loss, str):
            if self.graph is None:
                self.graph = captured(self.step, self.x)
            for _ in range(steps):
                self.graph.replay()
        else:
            for _ in range(steps):
                self.step()
        return self.x[: len(start)].clone()

    def step(self) -> None:
        from gammacaps.ops.kernels.capsules import margin_gradient
        from gammacaps.ops.kernels.images import climb

        v = self.network.forward(self.x)
        margins, grad = margin_gradient(v, self.labels, self.sign)
        if self.loss != "margin":
            grad = self.sign * loss_gradient(self.loss, v, self.labels)
        broken = None if not self.stay else margins if self.sign > 0 else -margins
        climb(self.x, self.network.backward(grad), self.low, self.high, self.size, broken)


def loss_gradient(
    loss: str | AttackLoss, v: Float[Tensor, "B N D"], labels: Int[Tensor, "B"]
) -> Float[Tensor, "B N D"]:
    """The gradient at the class capsules of a loss of their lengths."""
    function = LOSSES[loss] if isinstance(loss, str) else loss
    leaf = v.detach().requires_grad_()
    with torch.enable_grad():
        (grad,) = torch.autograd.grad(function(length(leaf), labels).sum(), leaf)
    return grad


def captured(step: Callable[[], None], x: Tensor) -> torch.cuda.CUDAGraph:
    """A step as a CUDA graph; it is run first outside, for kernels to be compiled, and x put back."""
    before = x.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    # Other threads load images and talk to other processes: only what this one does may disturb the capture.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        step()
    x.copy_(before)
    return graph


def addresses(model: nn.Module) -> tuple[int, ...]:
    """Where the weights lie: a graph reads them there."""
    return tuple(p.data_ptr() for p in model.parameters())


_attacks: "weakref.WeakKeyDictionary[nn.Module, OrderedDict[Any, FastAttack]]" = weakref.WeakKeyDictionary()


def fast_attack(model: Any, images: Tensor, loss: str | AttackLoss, norm: str, stay: bool) -> FastAttack | None:
    """The fast attack for these images, or None where it can't run; the reason is said once if it could be mended."""
    if not (has_kernels(model) and images.is_cuda and norm == "linf" and images.dtype == torch.float32):
        return None
    if plain_wanted() or model.depends_on_neighbours or tuple(images.shape[1:]) != model.image_shape:
        return None
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else torch.float32
    reason = why_no_kernels(model)
    if reason is not None:
        _say_once(reason)
        return None
    batch = -(-len(images) // BATCHES) * BATCHES
    mine = _attacks.setdefault(model, OrderedDict())
    key = (batch, dtype, loss, stay)
    engine = mine.pop(key, None)
    if engine is None or engine.weights != addresses(model):
        with torch.autocast("cuda", enabled=False):
            engine = FastAttack(model, batch, dtype, loss, stay)
    if isinstance(loss, str):  # a function may be new at every call
        mine[key] = engine
        while len(mine) > GRAPHS:
            mine.popitem(last=False)
    return engine


@functools.lru_cache
def _say_once(reason: str) -> None:
    warnings.warn(f"The fast attack can't run ({reason}); the plain one is used instead.", stacklevel=4)
