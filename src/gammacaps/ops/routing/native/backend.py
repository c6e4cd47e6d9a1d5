"""Routing by the compiled code, with its gradient: the same results as `written_out`, a sample's votes in the cache."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.ops.routing.backend import Gradients, Settings, Wanted
from gammacaps.ops.routing.native.build import Shape, library
from gammacaps.ops.routing.rules import is_sda, scale


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
        return "it needs Linux and GCC as the C compiler"
    return None


# A capsule's rows of parents lie on the stack.
MOST_PARENTS = 4096


class Native:
    """Routing by SDA or RBA in float32 on a CPU."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sda = is_sda(settings.rule.name)

    def arrange(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """I d D J, whose rows of parents lie in memory filled up to whole registers."""
        I, J, d, D = weight.shape
        if out is None:
            out = weight.new_empty(I, d, D, filled_up(J))[..., :J]
        plain = weight.transpose(1, 2).contiguous()  # a view of weights stored as `RoutedCapsules` stores them
        _library().arrange(*_plain(plain, out, self.shape(1, out)))
        return out

    def shape(self, batch: int, weight: Tensor) -> Shape:
        """For a weight that was arranged."""
        I, d, D, J = weight.shape
        return Shape(batch, I, J, d, D, self.settings.iterations, self.sda, scale(J), torch.get_num_threads())

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, *, couplings: bool, keep: bool
    ) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
        B, I, _ = poses.shape
        J, D = weight.shape[3], weight.shape[2]
        sums = poses.new_empty(B, self.settings.iterations, D, filled_up(J))  # s^k
        v, c = poses.new_empty(B, J, D), poses.new_empty(B, I, J)
        plain_bias = None if bias is None else bias.contiguous()
        _call("forward", poses.contiguous(), weight, plain_bias, sums, v, c, self.shape(B, weight))
        return v, c, (sums,)

    def backward(
        self,
        inputs: tuple[Tensor, Tensor, Tensor | None],
        kept: Sequence[Tensor],
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        wanted: Wanted,
    ) -> Gradients:
        (poses, weight, _), (sums,) = inputs, kept
        I, d, D, J = weight.shape
        B = len(poses)
        grad_v = poses.new_zeros(B, J, D) if grad_v is None else grad_v.contiguous()
        grad_c = None if grad_c is None else grad_c.contiguous()
        grad_poses, grad_bias = poses.new_empty(poses.shape), poses.new_empty(B, J, D)
        grad_weight = poses.new_empty(I, d, J, D) if wanted.weight else None
        given = (poses.contiguous(), weight, sums, grad_v, grad_c)
        _call("backward", *given, grad_poses, grad_weight, grad_bias, self.shape(B, weight))
        weight_gradient = None if grad_weight is None else grad_weight.transpose(1, 2)
        return grad_poses, weight_gradient, grad_bias.sum(0) if wanted.bias else None


def filled_up(parents: int) -> int:
    """To whole vector registers, as the code was compiled for them."""
    width: int = _library().width()
    return -(-parents // width) * width


def _library() -> ctypes.CDLL:
    code = library()
    assert code is not None
    return code


def _call(name: str, *arguments: Tensor | Shape | None) -> None:
    if getattr(_library(), name)(*_plain(*arguments)):
        raise MemoryError("There is not enough memory to route this batch: use a smaller one.")


def _plain(*arguments: Tensor | Shape | None) -> list[Any]:
    """Arguments as C takes them: where a tensor lies, and a null pointer for None."""
    plain: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            plain.append(ctypes.c_void_p(argument.data_ptr()))
        else:
            plain.append(ctypes.c_void_p(None) if argument is None else ctypes.byref(argument))
    return plain
