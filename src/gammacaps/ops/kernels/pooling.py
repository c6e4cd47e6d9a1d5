"""Bias, ReLU and 2x2 max-pooling of a convolution's output in one kernel, channels last; and the gradient in another.

Taken one by one each reads and writes the largest tensors of a network: together they take a third of the time.
"""

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

NONE = tl.constexpr(4)  # of a window's four pixels none is above 0
ROWS = 8192  # entries of a program


@triton.jit
@no_type_check
def places(row, count, h, w, H, W):
    """The first of the four pixels of a pooled one, whether there is a second down and right, and whether it is one."""
    image, rest = row // (h * w), row % (h * w)
    y, x = 2 * (rest // w), 2 * (rest % w)
    return (image * H + y) * W + x, y + 1 < H, x + 1 < W, row < count


@triton.jit
@no_type_check
def pool_kernel(x, bias, y, code, count, h, w, H, W, C, POOL: tl.constexpr, R: tl.constexpr, Cp: tl.constexpr):
    row, c = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, Cp)[None, :]
    channel = c < C
    b = tl.load(bias + c, mask=channel, other=0.0).to(tl.float32)
    if POOL:
        first, below, right, inside = places(row, count, h, w, H, W)
        best = tl.full((R, Cp), -float("inf"), tl.float32)
        which = tl.zeros((R, Cp), tl.int8)
        for k in tl.static_range(4):
            there = inside & channel & (below | (k < 2)) & (right | (k % 2 == 0))
            at = (first + (k // 2) * W + k % 2).to(tl.int64) * C + c
            value = tl.load(x + at, mask=there, other=-float("inf")).to(tl.float32) + b
            better = (value > best) | (value != value)
            best, which = tl.where(better, value, best), tl.where(better, k, which).to(tl.int8)
        out = row.to(tl.int64) * C + c
        tl.store(code + out, tl.where(best <= 0, NONE, which).to(tl.int8), mask=inside & channel)
    else:
        inside = row < count
        out = row.to(tl.int64) * C + c
        best = tl.load(x + out, mask=inside & channel, other=0.0).to(tl.float32) + b
    tl.store(y + out, tl.where(best <= 0, 0.0, best), mask=inside & channel)


@triton.jit
@no_type_check
def pool_gradient_kernel(grad, code, dx, count, h, w, H, W, C, R: tl.constexpr, Cp: tl.constexpr):
    row, c = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, Cp)[None, :]
    channel = c < C
    first, below, right, inside = places(row, count, h, w, H, W)
    out = row.to(tl.int64) * C + c
    g = tl.load(grad + out, mask=inside & channel, other=0.0)
    which = tl.load(code + out, mask=inside & channel, other=NONE)
    for k in tl.static_range(4):
        there = inside & channel & (below | (k < 2)) & (right | (k % 2 == 0))
        at = (first + (k // 2) * W + k % 2).to(tl.int64) * C + c
        tl.store(dx + at, tl.where(which == k, g, 0.0), mask=there)


class BiasReluPool(torch.autograd.Function):
    """relu(x + bias), and its 2x2 max-pooling (ceil mode) where `pool` says so."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, pool: bool) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        B, C, H, W = x.shape
        h, w = ((H + 1) // 2, (W + 1) // 2) if pool else (H, W)
        y = torch.empty((B, C, h, w), dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        code = torch.empty_like(y, dtype=torch.int8) if pool else y
        count, (R, Cp) = B * h * w, _block(C)
        pool_kernel[triton.cdiv(count, R),](x, bias, y, code, count, h, w, H, W, C, POOL=pool, R=R, Cp=Cp)
        ctx.save_for_backward(code)
        ctx.pool, ctx.size, ctx.dtype = pool, (H, W), bias.dtype
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (kept,) = ctx.saved_tensors
        grad = grad.contiguous(memory_format=torch.channels_last)
        if ctx.pool:
            (B, C, h, w), (H, W) = grad.shape, ctx.size
            dx = torch.empty((B, C, H, W), dtype=grad.dtype, device=grad.device, memory_format=torch.channels_last)
            count, (R, Cp) = B * h * w, _block(C)
            pool_gradient_kernel[triton.cdiv(count, R),](grad, kept, dx, count, h, w, H, W, C, R=R, Cp=Cp)
        else:
            dx = torch.ops.aten.threshold_backward(grad, kept, 0)
        return dx, dx.sum((0, 2, 3), dtype=ctx.dtype) if ctx.needs_input_grad[1] else None, None


def bias_relu_pool(x: Float[Tensor, "B C H W"], bias: Float[Tensor, "C"], pool: bool) -> Float[Tensor, "B C h w"]:
    """relu(x + bias), and its 2x2 max-pooling (ceil mode) where `pool` says so; channels last."""
    y: Tensor = BiasReluPool.apply(x, bias, pool)
    return y


def _block(channels: int) -> tuple[int, int]:
    """Rows and columns of a program's block."""
    columns = triton.next_power_of_2(channels)
    return max(1, min(64, ROWS // columns)), columns
