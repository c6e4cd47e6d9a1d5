"""Steps of images along or against the sign of their gradient, in place and each in one kernel."""

from typing import no_type_check

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor


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
def descend_kernel(x, grad, step, penalty, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g = tl.load(grad + at, mask=inside, other=0.0) + tl.load(penalty)
    # As in `climb`, a gradient that is not a number moves nothing.
    sign = tl.where(g > 0, 1.0, 0.0) - tl.where(g < 0, 1.0, 0.0)
    down = tl.load(x + at, mask=inside, other=0.0) - tl.load(step) * sign
    tl.store(x + at, tl.minimum(tl.maximum(down, 0.0), 1.0), mask=inside)


def descend(
    x: Float[Tensor, "B *n"], grad: Float[Tensor, "B *n"], step: Float[Tensor, "1"], penalty: Float[Tensor, "1"]
) -> None:
    """A step against the sign of the gradient, to which each pixel's penalty adds, back into [0, 1], in place."""
    count = x.numel()
    descend_kernel[triton.cdiv(count, 1024),](x, grad.contiguous(), step, penalty, count, BLOCK=1024)
