"""Routing by the compiled code, with its gradient: the same results as `written_out`, a sample's votes in the cache."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.ops.routing.backend import Gradients, Settings, Wanted
from gammacaps.ops.routing.native.build import Shape, library
from gammacaps.ops.routing.rules import is_sda, scale
from gammacaps.ops.vectors import squash


def why_not_native(settings: Settings, dtype: torch.dtype, weight: Tensor, poses: Tensor) -> str | None:
    """Why the compiled code can't route these poses (B, I, d) by this weight (I, J, d, D); None where it can.

    Whether it has the rule is the rule's to say.
    """
    if poses.device.type != "cpu" or dtype != torch.float32:
        return "it is for float32 on a CPU"
    if min(poses.shape[0], *weight.shape) < 1 or weight.shape[1] > MOST_PARENTS:
        return f"it is for at least one of everything, and for at most {MOST_PARENTS} parents"
    if type(poses) is not Tensor or type(weight) not in (Tensor, nn.Parameter):
        return "it is for plain tensors, whose numbers lie in memory"
    if settings.rule.batch_logits is not None and settings.scale_over != "capsule":
        return "it scales distances over each capsule, not over the batch"
    if torch.compiler.is_compiling():
        return "torch.compile can't look into it"
    if library() is None:
        return "it needs Linux and a C compiler"
    return None


# A capsule's rows of parents lie on the stack.
MOST_PARENTS = 4096


class Native:
    """Routing by SDA or RBA in float32 on a CPU."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sda = is_sda(settings.rule.name)

    def arrange(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """I d J D: a view of weights stored as `RoutedCapsules` stores them."""
        return weight.transpose(1, 2).contiguous()

    def shape(self, poses: Tensor, weight: Tensor) -> Shape:
        (B, I, d), (_, _, J, D) = poses.shape, weight.shape
        return Shape(B, I, J, d, D, self.settings.iterations, self.sda, scale(J), torch.get_num_threads())

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, *, couplings: bool, keep: bool
    ) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
        B, I, _ = poses.shape
        _, _, J, D = weight.shape
        r, P = self.settings.iterations, filled_up(J)
        u, ratio, sums = (poses.new_empty(shape) for shape in ((B, I, D, P), (B, I, P), (r, B, D, P)))
        c = poses.new_empty(B, I, J)
        plain_bias = None if bias is None else bias.contiguous()
        _call("forward", poses.contiguous(), weight, plain_bias, u, ratio, sums, c, self.shape(poses, weight))
        return squash(sums[-1, :, :, :J].transpose(1, 2)), c, (u, ratio, sums)

    def backward(
        self,
        inputs: tuple[Tensor, Tensor, Tensor | None],
        kept: Sequence[Tensor],
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        wanted: Wanted,
    ) -> Gradients:
        (poses, weight, _), (u, ratio, sums) = inputs, kept
        B, I, D, P = u.shape
        J, r = weight.shape[2], len(sums)
        grad_v = poses.new_zeros(B, J, D) if grad_v is None else grad_v.contiguous()
        grad_c = None if grad_c is None else grad_c.contiguous()
        grad_poses, by_sample = poses.new_empty(poses.shape), torch.empty_like(sums[0])
        grad_weight = torch.empty_like(weight) if wanted.weight else None  # I d J D
        memory = poses.new_empty(B, (2 * r + 1) * I * P + 2 * r * D * P)
        given = (poses.contiguous(), weight, u, ratio, sums, grad_v, grad_c)
        _call("backward", *given, grad_poses, grad_weight, by_sample, memory, self.shape(poses, weight))
        grad_bias = by_sample.sum(0)[:, :J].t() if wanted.bias else None  # J D
        return grad_poses, None if grad_weight is None else grad_weight.transpose(1, 2), grad_bias


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
