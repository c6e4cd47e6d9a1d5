"""What a backend of routing is: something that computes what a rule's formula says, and its gradient, faster.

There are five: `written_out.WrittenOut`, `native.backend.Native`, and `Whole`, `Few` and `Many` of `kernels.layers`.
Whether one can be used, its `why_not` or `fits` says; `choice.py` asks them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor

from gammacaps.ops.routing.rules import RoutingRule, route_by_formula
from gammacaps.ops.torch_func import transformed


@dataclass(frozen=True)
class Settings:
    """What is fixed about a routing: its rule, the iterations, and what SDA's mean distance runs over."""

    rule: RoutingRule
    iterations: int
    scale_over: str = "capsule"


class Wanted(NamedTuple):
    """Which gradients are asked for."""

    poses: bool
    weight: bool
    bias: bool


# Of poses (B I d), weight (I J d D) and bias (J D): those that are wanted.
Gradients: TypeAlias = tuple[Tensor | None, Tensor | None, Tensor | None]


@runtime_checkable
class Backend(Protocol):
    """Routes by one rule. Weights are those that `arrange` made, which may be kept for many passes."""

    settings: Settings

    def arrange(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """The weight (I J d D) as `forward` and `backward` read it, in the memory of an earlier one where given."""
        ...

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, *, couplings: bool, keep: bool
    ) -> tuple[Tensor, Tensor | None, Sequence[Tensor | None]]:
        """Poses (B J D), couplings (B I J) if asked for, and, to `keep`, what `backward` needs beside its inputs."""
        ...

    def backward(
        self,
        inputs: tuple[Tensor, Tensor, Tensor | None],
        kept: Sequence[Tensor],
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        wanted: Wanted,
    ) -> Gradients:
        """The gradients from those at poses and couplings; the inputs are the poses, weight and bias of `forward`."""
        ...


class Routing(torch.autograd.Function):
    """A backend within autograd: poses (B I d), weight (I J d D), bias (J D) or None -> poses (B J D), couplings."""

    @staticmethod
    def forward(ctx: Any, poses: Tensor, weight: Tensor, bias: Tensor | None, backend: Backend) -> tuple[Tensor, Any]:
        arranged = backend.arrange(weight)
        v, c, kept = backend.forward(poses, arranged, bias, couplings=True, keep=True)
        ctx.backend = backend
        ctx.save_for_backward(poses, weight, bias, arranged, *kept)
        ctx.set_materialize_grads(False)
        return v, c

    @staticmethod
    def backward(
        ctx: Any, grad_v: Tensor | None, grad_c: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        poses, weight, bias, arranged, *kept = ctx.saved_tensors
        if torch.is_grad_enabled() or transformed(grad_v, grad_c):
            return *differentiable_gradient(poses, weight, bias, ctx.backend.settings, grad_v, grad_c), None
        wanted = Wanted(*ctx.needs_input_grad[:3])
        return *ctx.backend.backward((poses, arranged, bias), kept, grad_v, grad_c, wanted), None


def differentiable_gradient(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    settings: Settings,
    grad_v: Tensor | None,
    grad_c: Tensor | None,
) -> Gradients:
    """The same gradient through autograd over the formula: for whoever asks for a gradient of the gradient, for its
    forward-mode tangent, or for the gradients of many at once (torch.vmap of a backward pass).
    """
    with torch.enable_grad():
        outs = route_by_formula(settings.rule, poses, weight, bias, settings.iterations, settings.scale_over)
    pairs = [(out, grad) for out, grad in zip(outs, (grad_v, grad_c), strict=True) if grad is not None]
    inputs = (poses, weight, bias)
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    again = torch.is_grad_enabled()
    gradients = iter(
        torch.autograd.grad(
            [out for out, _ in pairs], wanted, [grad for _, grad in pairs], create_graph=again, allow_unused=True
        )
    )
    by_input = [next(gradients) if t is not None and t.requires_grad else None for t in inputs]
    return by_input[0], by_input[1], by_input[2]
