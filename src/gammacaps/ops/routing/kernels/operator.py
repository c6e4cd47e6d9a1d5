"""Routing by Triton kernels as operators of torch, so that autograd, torch.compile and fake tensors know them."""

from typing import Any

import torch
from torch import Tensor

from gammacaps.ops.routing.backend import Settings, Wanted, differentiable_gradient
from gammacaps.ops.routing.kernels.layers import Few, Many, Whole, kernels_for
from gammacaps.ops.routing.rules import rule_named
from gammacaps.ops.torch_func import transformed

# v, c, the arranged weight, and what the gradient needs beside it; what there is none of is empty.
Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
MOST_KEPT = 6


def _layer(poses: Tensor, weight: Tensor, rule: str, iterations: int, learning: bool) -> Whole | Few | Many:
    settings = Settings(rule_named(rule), iterations)
    return kernels_for(len(poses), weight.shape, settings, poses.device, learning=learning)


def _outputs(v: Tensor, c: Tensor, arranged: Tensor, kept: list[Tensor]) -> Outputs:
    kept = kept + [v.new_empty(0) for _ in range(MOST_KEPT - len(kept))]
    return v, c, arranged, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5]


@torch.library.custom_op("gammacaps::route", mutates_args=())
def route(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rule: str,
    iterations: int,
    couplings: bool,
    keep: bool,
    learning: bool,
) -> Outputs:
    """Poses (B, J, D), couplings (B, I, J) or nothing, and, if `keep` says so, what the gradient needs again."""
    layer = _layer(poses, weight, rule, iterations, learning)
    arranged = layer.arrange(weight)
    v, c, kept = layer.forward(poses, arranged, bias, couplings=couplings, keep=keep)
    kept_weight = arranged if keep and layer.arranged_shape is not None else v.new_empty(0)
    return _outputs(v, v.new_empty(0) if c is None else c, kept_weight, list(kept))


@route.register_fake
def _(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rule: str,
    iterations: int,
    couplings: bool,
    keep: bool,
    learning: bool,
) -> Outputs:
    (B, I, _), (_, J, _, D) = poses.shape, weight.shape
    layer = _layer(poses, weight, rule, iterations, learning)
    shapes = [(B, J, D), (B, I, J) if couplings else (0,), (layer.arranged_shape or (0,)) if keep else (0,)]
    v, c, arranged, *kept = (
        poses.new_empty(shape, dtype=torch.float32) for shape in (*shapes, *(layer.kept_shapes if keep else ()))
    )
    return _outputs(v, c, arranged, kept)


@torch.library.custom_op("gammacaps::route_backward", mutates_args=())
def route_backward(
    grad_v: Tensor | None,
    grad_c: Tensor | None,
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kept: list[Tensor],
    rule: str,
    iterations: int,
    want_poses: bool,
    want_weight: bool,
    learning: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of poses, weight and bias, in float32; nothing for those not wanted."""
    layer = _layer(poses, weight, rule, iterations, learning)
    arranged = weight if layer.arranged_shape is None else kept[0]
    wanted = Wanted(want_poses, want_weight, learning)
    gradients = layer.backward((poses, arranged, bias), kept[1 : 1 + len(layer.kept_shapes)], grad_v, grad_c, wanted)
    grad_poses, grad_weight, grad_bias = (
        poses.new_empty(0, dtype=torch.float32) if gradient is None else gradient for gradient in gradients
    )
    return grad_poses, grad_weight, grad_bias


@route_backward.register_fake
def _(
    grad_v: Tensor | None,
    grad_c: Tensor | None,
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kept: list[Tensor],
    rule: str,
    iterations: int,
    want_poses: bool,
    want_weight: bool,
    learning: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    _, J, _, D = weight.shape
    layer = _layer(poses, weight, rule, iterations, learning)

    def new(*shape: int) -> Tensor:
        return poses.new_empty(shape, dtype=torch.float32)

    return (
        new(*poses.shape) if want_poses else new(0),
        layer.weight_gradient(weight) if want_weight else new(0),
        new(J, D) if learning else new(0),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Outputs) -> None:
    poses, weight, bias, rule, iterations, couplings, _, learning = inputs
    _, c, *kept = output
    ctx.rule, ctx.iterations, ctx.learning = rule, iterations, learning
    ctx.save_for_backward(poses, weight, bias, *kept)
    ctx.mark_non_differentiable(*(kept if couplings else (c, *kept)))
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad_v: Tensor | None, grad_c: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    poses, weight, bias, *kept = ctx.saved_tensors
    if grad_v is None and grad_c is None:
        return (None,) * 8
    if torch.is_grad_enabled() or transformed(grad_v, grad_c):  # the gradient is to be differentiated, or one of many
        settings = Settings(rule_named(ctx.rule), ctx.iterations)
        return *differentiable_gradient(poses, weight, bias, settings, grad_v, grad_c), *(None,) * 5
    want_poses, want_weight, want_bias = ctx.needs_input_grad[:3]
    grad_poses, grad_weight, grad_bias = route_backward(
        grad_v, grad_c, poses, weight, bias, kept, ctx.rule, ctx.iterations, want_poses, want_weight, ctx.learning
    )
    return (
        grad_poses.to(poses.dtype) if want_poses else None,
        grad_weight.to(weight.dtype) if want_weight else None,
        grad_bias.to(bias.dtype) if want_bias else None,
        *(None,) * 5,
    )


route.register_autograd(_backward, setup_context=_keep)
