"""Routing by the compiled code, with its gradient: the same results as `ops.adjoint`, a sample's votes in the cache."""

import ctypes
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.ops.adjoint import Rule, differentiable_gradient
from gammacaps.ops.native import Shape, library
from gammacaps.ops.reference import scale, squash
from gammacaps.ops.transforms import transformed


def why_not_native(poses: Tensor, weight: Tensor, dtype: torch.dtype, rule: Rule) -> str | None:
    """Why the compiled code can't route these poses (B, I, d) by this weight (I, J, d, D); None where it can."""
    if poses.device.type != "cpu" or dtype != torch.float32:
        return "it is for float32 on a CPU"
    if min(poses.shape[0], *weight.shape) < 1 or weight.shape[1] > MOST_PARENTS:
        return f"it is for at least one of everything, and for at most {MOST_PARENTS} parents"
    if type(poses) is not Tensor or type(weight) not in (Tensor, nn.Parameter):
        return "it is for plain tensors, whose numbers lie in memory"
    if rule.name == "sda" and rule.scale_over != "capsule":
        return "it scales distances over each capsule, not over the batch"
    if torch.compiler.is_compiling():
        return "torch.compile can't look into it"
    if library() is None:
        return "it needs Linux and a C compiler"
    return None


# A capsule's rows of parents lie on the stack.
MOST_PARENTS = 4096


class NativeRouting(torch.autograd.Function):
    """poses (B I d), weight (I J d D), bias (J D) or None -> poses (B J D), couplings (B I J)."""

    @staticmethod
    def forward(ctx: Any, poses: Tensor, weight: Tensor, bias: Tensor | None, rule: Rule) -> tuple[Tensor, Tensor]:
        B, I, d = poses.shape
        _, J, _, D = weight.shape
        rows = weight.transpose(1, 2).contiguous()  # I d J D: itself a view, as `RoutedCapsules` stores its weights
        r, P = rule.iterations, filled_up(J)
        u, ratio, sums = (poses.new_empty(shape) for shape in ((B, I, D, P), (B, I, P), (r, B, D, P)))
        couplings = poses.new_empty(B, I, J)
        ctx.rule, ctx.shape = rule, Shape(B, I, J, d, D, r, rule.name == "sda", scale(J), torch.get_num_threads())
        told = None if bias is None else bias.contiguous()
        _call("forward", poses.contiguous(), rows, told, u, ratio, sums, couplings, ctx.shape)
        ctx.save_for_backward(poses, weight, bias, rows, u, ratio, sums)
        ctx.set_materialize_grads(False)
        return squash(sums[-1, :, :, :J].transpose(1, 2)), couplings

    @staticmethod
    def backward(
        ctx: Any, grad_v: Tensor | None, grad_c: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        poses, weight, bias, rows, u, ratio, sums = ctx.saved_tensors
        if torch.is_grad_enabled() or transformed(grad_v, grad_c):
            by_parent = None if grad_c is None else grad_c.transpose(1, 2)
            return *differentiable_gradient(poses, weight, bias, ctx.rule, grad_v, by_parent), None
        B, I, D, P = u.shape
        J, r = weight.shape[1], len(sums)
        grad_v = poses.new_zeros(B, J, D) if grad_v is None else grad_v.contiguous()
        grad_c = None if grad_c is None else grad_c.contiguous()
        grad_poses, by_sample = poses.new_empty(poses.shape), torch.empty_like(sums[0])
        grad_rows = torch.empty_like(rows) if ctx.needs_input_grad[1] else None
        memory = poses.new_empty(B, (2 * r + 1) * I * P + 2 * r * D * P)
        given = (poses.contiguous(), rows, u, ratio, sums, grad_v, grad_c)
        _call("backward", *given, grad_poses, grad_rows, by_sample, memory, ctx.shape)
        grad_bias = by_sample.sum(0)[:, :J].t() if ctx.needs_input_grad[2] else None  # J D
        return grad_poses, None if grad_rows is None else grad_rows.transpose(1, 2), grad_bias, None


def filled_up(parents: int) -> int:
    """To a multiple of 8, so that loops over parents fill vector registers."""
    return -(-parents // 8) * 8


def _call(name: str, *arguments: Tensor | Shape | None) -> None:
    """Calls the compiled code; all tensors are contiguous, and None is a null pointer."""
    code = library()
    assert code is not None
    plain: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            assert argument.is_contiguous()
            plain.append(ctypes.c_void_p(argument.data_ptr()))
        else:
            plain.append(ctypes.c_void_p(None) if argument is None else ctypes.byref(argument))
    if getattr(code, name)(*plain):
        raise MemoryError("There is not enough memory to route this batch: use a smaller one.")
