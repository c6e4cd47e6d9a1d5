"""What the routing kernels share: votes, couplings and their gradients for a tile of votes.

A tile of votes is [J, G, R, Dh, 4]: J upper capsules, G x R senders (lower capsules, or samples of one lower capsule),
and the D entries in fours. Triton gives a thread the 16 bytes of the last axis, then hands out lanes and warps from the
first axis on. So the lanes of a warp are the upper capsules of one sender, the warps are the G groups of senders, and a
thread holds all entries of the votes of R senders. Sums over entries then need no exchange, and sums over upper
capsules none between warps. Axes are filled up to powers of two with zeros.

That is so for `whole` and `few`. The tiles of `many` have other axes, and hold some of a row of parents alone: its
couplings are a kernel of their own over whole rows, and it takes roots and quotients where these functions take their
quick approximations. So it shares the constants, and has functions of its own for what it does otherwise;
its sums over lower capsules are squashed outside of kernels, by `ops.vectors`.
"""

from typing import no_type_check

import triton
import triton.language as tl

from gammacaps.ops.kernels.squash import TINY, squash_factor, squash_gradient_factors

SMALLEST = tl.constexpr(1e-30)  # squares below it count as this where their root is divided by
NEAR = tl.constexpr(100 * 2.0**-23)  # as in `written_out.py`: nearer, the direction to a vote is rounding error
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
@no_type_check
def dot(x, y):
    """The dot products of vectors [J, G, R, Dh, 4] -> [J, G, R]."""
    return tl.sum(tl.reshape(x * y, (x.shape[0], x.shape[1], x.shape[2], x.shape[3] * 4)), axis=3)


@triton.jit
@no_type_check
def reciprocal(x):
    """1 / x for x > 0 in four instructions, where a division takes eight: a guess, and one step of Newton's method."""
    root = tl.rsqrt(x)
    guess = root * root
    return guess * (2 - x * guess)


@triton.jit
@no_type_check
def times(x, y):
    """Vectors [J, G, R, Dh, 4] times a number for each pair of capsules, [J, G, R]."""
    return x * y[:, :, :, None, None]


@triton.jit
@no_type_check
def shorten(raw, most, SDA: tl.constexpr):
    """Votes at most as long as their senders, `most` [1, G, R], and how much each was shortened [J, G, R]."""
    if SDA:
        square = dot(raw, raw)
        ratio = tl.where(square > most * most, most * tl.rsqrt(tl.maximum(square, SMALLEST)), 1.0)
        return times(raw, ratio), ratio
    return raw, tl.full((raw.shape[0], raw.shape[1], raw.shape[2]), 1.0, tl.float32)


@triton.jit
@no_type_check
def shorten_gradient(grad_u, u, ratio, square):
    """The gradient at votes before they were shortened, and how much of it lengthens each sender [J, G, R].

    Where a vote was shortened, its length is its sender's, whose square is `square` [1, G, R]: what points along it
    moves the sender.
    """
    along = tl.where(ratio < 1, dot(grad_u, u) / tl.maximum(square, TINY * TINY), 0.0)
    return times(grad_u - times(u, along), ratio), along


@triton.jit
@no_type_check
def squash(s):
    """s n / (1 + n^2), n = |s|, for vectors [J, G, R, Dh, 4]."""
    return times(s, squash_factor(dot(s, s)))


@triton.jit
@no_type_check
def squash_gradient(s, grad):
    """The gradient at s from that at squash(s)."""
    by_grad, by_s = squash_gradient_factors(dot(s, s), dot(s, grad))
    return times(grad, by_grad) + times(s, by_s)


@triton.jit
@no_type_check
def couple(u, pull, J: tl.constexpr, scale, SDA: tl.constexpr):
    """Couplings [J, G, R] of votes u with what pulls them, and the distances; for RBA the logits in their place.

    What pulls is the parents' poses v for SDA, and their sum over the iterations so far for RBA.
    """
    inside = tl.arange(0, u.shape[0])[:, None, None] < J
    if SDA:
        offset = u - pull
        square = dot(offset, offset)
        distance = square * tl.rsqrt(tl.maximum(square, SMALLEST))  # J G R
        rate = reciprocal(tl.maximum(tl.sum(distance, axis=0, keep_dims=True) * (1.0 / J), TINY))  # 1 G R
        # No maximum is taken off: the logits are at most 0, and the largest is at least `scale`.
        share = tl.exp2(distance * (scale * LOG2_E * rate))
        share = tl.where(inside, share, 0.0)
    else:
        distance = tl.where(inside, dot(u, pull), float("-inf"))
        share = tl.exp2((distance - tl.max(distance, axis=0, keep_dims=True)) * LOG2_E)
    return share * reciprocal(tl.sum(share, axis=0, keep_dims=True)), distance


@triton.jit
@no_type_check
def softmax_gradient(c, grad):
    """The gradient at the logits, [J, G, R]."""
    weighted = c * grad
    return weighted - c * tl.sum(weighted, axis=0, keep_dims=True)


@triton.jit
@no_type_check
def distance_gradient(distance, grad, J: tl.constexpr, scale):
    """The gradient at the distances, divided by the distance, [J, G, R], from that at the logits."""
    usual = tl.sum(distance, axis=0, keep_dims=True) * (1.0 / J)
    rate = reciprocal(tl.maximum(usual, TINY))
    mean = tl.sum(grad * distance, axis=0, keep_dims=True) * (rate * (1.0 / J))
    mean = tl.where(usual > TINY, mean, 0.0)  # a mean distance that was raised to TINY is a constant
    slope = (grad - mean) * (scale * rate) * reciprocal(tl.maximum(distance, NEAR))
    return tl.where(distance > NEAR, slope, 0.0)
