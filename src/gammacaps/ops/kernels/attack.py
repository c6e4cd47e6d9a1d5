"""What an attack or a generated input needs beside the network, each in one kernel: in several, it is all launches."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from gammacaps.ops.kernels.votes import TINY


@triton.jit
@no_type_check
def squash_gradient_kernel(s, grad, out, count, SIZE: tl.constexpr, ROWS: tl.constexpr, SP: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    entry = tl.arange(0, SP)[None, :]
    inside = (row < count) & (entry < SIZE)
    x = tl.load(s + row * SIZE + entry, mask=inside, other=0.0)
    g = tl.load(grad + row * SIZE + entry, mask=inside, other=0.0)
    square = tl.sum(x * x, axis=1, keep_dims=True)
    norm = tl.sqrt(square)
    along = tl.sum(x * g, axis=1, keep_dims=True) / tl.maximum(norm, TINY)
    below = 1 + square
    tl.store(out + row * SIZE + entry, g * (norm / below) + x * (along * (1 - square) / (below * below)), mask=inside)


def squash_gradient(
    s: Float[Tensor, "*n size"], grad: Float[Tensor, "*n size"], dtype: torch.dtype
) -> Float[Tensor, "*n size"]:
    """The gradient at s of squash(s), in `dtype`."""
    size = s.shape[-1]
    out, count, rows = torch.empty(s.shape, dtype=dtype, device=s.device), s.numel() // size, 256
    squash_gradient_kernel[triton.cdiv(count, rows),](
        s, grad, out, count, SIZE=size, ROWS=rows, SP=triton.next_power_of_2(size)
    )
    return out


@triton.jit
@no_type_check
def margin_kernel(v, labels, margins, grad, sign, N: tl.constexpr, D: tl.constexpr, Np: tl.constexpr, Dp: tl.constexpr):
    b = tl.program_id(0)
    label = tl.load(labels + b)
    n, entry = tl.arange(0, Np)[:, None], tl.arange(0, Dp)[None, :]
    inside = (n < N) & (entry < D)
    x = tl.load(v + (b * N + n) * D + entry, mask=inside, other=0.0)
    length = tl.sqrt(tl.sum(x * x, axis=1, keep_dims=True))  # N 1
    wrong = tl.where((n < N) & (n != label), length, -1.0)
    best = tl.argmax(wrong, axis=0, keep_dims=True)  # 1 1
    true = tl.sum(tl.where(n == label, length, 0.0))
    tl.store(margins + b, tl.max(wrong) - true)
    side = tl.where(n == best, sign, tl.where(n == label, -sign, 0.0))
    tl.store(grad + (b * N + n) * D + entry, x * (side / tl.maximum(length, TINY)), mask=inside)


def margin_gradient(
    v: Float[Tensor, "B N D"], labels: Int[Tensor, "B"], sign: float
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B N D"]]:
    """The margin, best wrong length less true length, and `sign` times its gradient at the class capsules v."""
    B, N, D = v.shape
    margins, grad = torch.empty(B, dtype=torch.float32, device=v.device), torch.empty_like(v)
    Np, Dp = triton.next_power_of_2(N), triton.next_power_of_2(D)
    margin_kernel[B,](v, labels, margins, grad, sign, N=N, D=D, Np=Np, Dp=Dp, num_warps=1 if Np * Dp < 1024 else 4)
    return margins, grad


@triton.jit
@no_type_check
def climb_kernel(x, grad, low, high, size, stay, count, STAY: tl.constexpr, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < count
    at = b * count + pixel
    old = tl.load(x + at, mask=inside, other=0.0)
    g = tl.load(grad + at, mask=inside, other=0.0)
    # A gradient that is not a number is neither above nor below 0, and moves nothing.
    up = old + tl.load(size) * (tl.where(g > 0, 1.0, 0.0) - tl.where(g < 0, 1.0, 0.0))
    new = tl.minimum(
        tl.maximum(up, tl.load(low + at, mask=inside, other=0.0)), tl.load(high + at, mask=inside, other=0.0)
    )
    if STAY:
        new = tl.where(tl.load(stay + b) > 0, old, new)
    tl.store(x + at, new, mask=inside)


def climb(
    x: Float[Tensor, "B *n"],
    grad: Float[Tensor, "B *n"],
    low: Float[Tensor, "B *n"],
    high: Float[Tensor, "B *n"],
    size: Float[Tensor, "1"],
    stay: Float[Tensor, "B"] | None,
) -> None:
    """A step of `size` along the gradient's sign, back between low and high, in place; not where `stay` is above 0."""
    count = x[0].numel()
    climb_kernel[len(x), triton.cdiv(count, 1024)](
        x, grad, low, high, size, stay, count, STAY=stay is not None, BLOCK=1024
    )


@triton.jit
@no_type_check
def activation_gradient_kernel(v, chosen, grad, n, D: tl.constexpr, ROWS: tl.constexpr, Dp: tl.constexpr):
    b = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    entry = tl.arange(0, Dp)[None, :]
    inside = (row < n) & (entry < D)
    at = (b * n + row) * D + entry
    x = tl.load(v + at, mask=inside & (row == tl.load(chosen + b)), other=0.0)  # all others count as zero
    length = tl.sqrt(tl.sum(x * x, axis=1, keep_dims=True))
    tl.store(grad + at, x * (2 * (length - 1) / tl.maximum(length, TINY)), mask=inside)


def activation_gradient(v: Float[Tensor, "B n D"], chosen: Int[Tensor, "B"]) -> Float[Tensor, "B n D"]:
    """The gradient at the capsules v of (|v_i| - 1)^2, where i is the one chosen in each sample."""
    B, n, D = v.shape
    grad, rows = torch.empty_like(v), min(128, triton.next_power_of_2(n))
    activation_gradient_kernel[B, triton.cdiv(n, rows)](
        v, chosen, grad, n, D=D, ROWS=rows, Dp=triton.next_power_of_2(D)
    )
    return grad


@triton.jit
@no_type_check
def descend_kernel(x, grad, step, penalty, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g = tl.load(grad + at, mask=inside, other=0.0) + penalty
    # As in `climb`, a gradient that is not a number moves nothing.
    sign = tl.where(g > 0, 1.0, 0.0) - tl.where(g < 0, 1.0, 0.0)
    down = tl.load(x + at, mask=inside, other=0.0) - step * sign
    tl.store(x + at, tl.minimum(tl.maximum(down, 0.0), 1.0), mask=inside)


def descend(x: Float[Tensor, "B *n"], grad: Float[Tensor, "B *n"], step: float, penalty: float) -> None:
    """A step against the sign of the gradient, to which each pixel's penalty adds, back into [0, 1], in place."""
    count = x.numel()
    descend_kernel[triton.cdiv(count, 1024),](x, grad.contiguous(), step, penalty, count, BLOCK=1024)
