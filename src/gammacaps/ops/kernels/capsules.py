"""Gradients at capsules, each in one kernel: of a squash, of a margin between classes, of one capsule's activation.

In several kernels each, they would be all launches.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from gammacaps.ops.kernels.squash import TINY, squash_gradient_factors


@triton.jit
@no_type_check
def squash_gradient_kernel(s, grad, out, count, SIZE: tl.constexpr, ROWS: tl.constexpr, SP: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    entry = tl.arange(0, SP)[None, :]
    inside = (row < count) & (entry < SIZE)
    x = tl.load(s + row * SIZE + entry, mask=inside, other=0.0)
    g = tl.load(grad + row * SIZE + entry, mask=inside, other=0.0)
    square, product = tl.sum(x * x, axis=1, keep_dims=True), tl.sum(x * g, axis=1, keep_dims=True)
    by_grad, by_s = squash_gradient_factors(square, product)
    tl.store(out + row * SIZE + entry, g * by_grad + x * by_s, mask=inside)


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
