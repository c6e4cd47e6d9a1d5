"""Routing by Triton kernels as operators of torch, so that autograd, torch.compile and fake tensors know them.

Three sets of kernels share the work: `whole` for layers so small that a program holds all votes of a sample, `few`
where a program holds those of one lower capsule, and `many` for any number of upper capsules.
"""

from typing import Any

import torch
from torch import Tensor

from gammacaps.ops.adjoint import Rule, differentiable_gradient
from gammacaps.ops.kernels import few, many, whole
from gammacaps.ops.transforms import transformed

# v, c, and what the gradient needs again: `few.Kept`, or the sums of `many`; the rest is empty.
Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def kernels_for(weight: Tensor, learning: bool) -> str:
    """Which kernels route by this weight (I, J, d, D); `whole` has no gradient of the weights."""
    I, J, d, D = weight.shape
    if not learning and whole.fits(I, J, d, D):
        return "whole"
    return "few" if few.fits(J, d, D) else "many"


def _layer(poses: Tensor, weight: Tensor, rule: str) -> few.Layer:
    return few.Layer(len(poses), weight.shape, rule, poses.device)


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
    which = kernels_for(weight, learning)
    kept: list[Tensor] = []
    if which == "whole":
        v, c = whole.forward(poses, weight, bias, rule, iterations, couplings)
    elif which == "many":
        v, c, sums = many.forward(poses, weight, bias, rule, iterations, couplings)
        kept = [sums]
    else:
        layer = _layer(poses, weight, rule)
        v, all_kept = layer.forward(
            poses.contiguous(), layer.arrange_weight(weight), bias, iterations, keep or couplings
        )
        c = layer.plain_couplings(all_kept) if couplings else None
        kept = list(all_kept) if keep else []
    return _outputs(v, poses.new_empty(0, dtype=torch.float32) if c is None else c, kept)


def _outputs(v: Tensor, c: Tensor, kept: list[Tensor]) -> Outputs:
    kept = kept + [v.new_empty(0) for _ in range(7 - len(kept))]
    return v, c, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5], kept[6]


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
    (B, I, _), (_, J, d, D) = poses.shape, weight.shape
    new = poses.new_empty
    which = kernels_for(weight, learning)
    shapes: list[tuple[int, ...]] = [(0,)] * 7
    if which == "many":
        shapes[0] = (iterations, B, J, D)
    elif which == "few" and keep:
        layer = _layer(poses, weight, rule)
        vectors, links = (layer.Bp, layer.Dh, layer.Jp, 4), (I, layer.Bp, layer.Jp)
        shapes = [
            (I, d, layer.Bp),
            (I, layer.Bp),
            (I, d, *vectors[1:]),
            (iterations, *vectors),
            (iterations - 1, *vectors),
            (iterations - 1, *links),
            (iterations - 1 if rule == "sda" else 0, *links),
        ]
    v, c, *kept = (new(shape, dtype=torch.float32) for shape in [(B, J, D), (B, I, J) if couplings else (0,), *shapes])
    return v, c, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5], kept[6]


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
    which = kernels_for(weight, learning)
    nothing = [poses.new_empty(0, dtype=torch.float32) for _ in range(3)]
    if which == "whole":
        return whole.backward(grad_v, grad_c, poses, weight, bias, rule, iterations), nothing[1], nothing[2]
    if which == "many":
        found, learned, grad_bias = many.backward(
            grad_v, grad_c, poses, weight, kept[0], rule, iterations, want_poses, want_weight
        )
    else:
        layer = _layer(poses, weight, rule)
        grad_c = None if grad_c is None else grad_c.contiguous()
        found, learned, grads = layer.backward(few.Kept(*kept), grad_v, grad_c, want_poses, want_weight)
        grad_bias = layer.plain_vectors(grads[:, : layer.B].sum((0, 1))).contiguous() if learning else nothing[2]
    return nothing[0] if found is None else found, nothing[1] if learned is None else learned, grad_bias


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
    I, J, d, D = weight.shape
    new = poses.new_empty
    which = kernels_for(weight, learning)
    laid_out = new(I, d, J, D, dtype=torch.float32).transpose(1, 2)
    if which == "many":
        laid_out = torch.empty_strided(weight.shape, weight.stride(), dtype=torch.float32, device=poses.device)
    return (
        new(poses.shape if want_poses or which == "whole" else (0,), dtype=torch.float32),
        laid_out if want_weight else new(0, dtype=torch.float32),
        new((J, D) if learning or which == "many" else (0,), dtype=torch.float32),
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
        turned = None if grad_c is None else grad_c.transpose(1, 2)
        rule = Rule(ctx.rule, ctx.iterations, "capsule")
        return *differentiable_gradient(poses, weight, bias, rule, grad_v, turned), *(None,) * 5
    want_poses, want_weight, want_bias = ctx.needs_input_grad[:3]
    found, learned, grad_bias = route_backward(
        grad_v, grad_c, poses, weight, bias, kept, ctx.rule, ctx.iterations, want_poses, want_weight, ctx.learning
    )
    return (
        found.to(poses.dtype) if want_poses else None,
        learned.to(weight.dtype) if want_weight else None,
        grad_bias.to(bias.dtype) if want_bias else None,
        *(None,) * 5,
    )


route.register_autograd(_backward, setup_context=_keep)
