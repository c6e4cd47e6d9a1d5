"""Kernels that go over the windows of a child: the softmax over all its parents, its gradient, and last sums.

A program has N children, each of one sample; a tile of numbers is [N, J], one for each of the windows in which a child
can stand. Where there is no such window, it is masked.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def child(first, B, N: tl.constexpr, n: tl.constexpr, WIDTH: tl.constexpr, TYPES: tl.constexpr):
    """Samples, rows, columns and types of N children from the first on [N, 1], and which of them are there."""
    at = first.to(tl.int64) * N + tl.arange(0, N)[:, None]
    b, c = at // n, (at % n).to(tl.int32)
    place = c // TYPES
    return at, b, place // WIDTH, place % WIDTH, c % TYPES, b < B


@triton.jit
@no_type_check
def window(
    b, row, column, kind, there, up, left, LY: tl.constexpr, LX: tl.constexpr, K: tl.constexpr,
    TYPES: tl.constexpr, WINDOW_ROWS: tl.constexpr, COLUMNS: tl.constexpr, STRIDE: tl.constexpr,
):  # fmt: skip
    """Where (b, l, k) lies in memory for the window that is `up` and `left` of a child's last, and if there is one."""
    y, x = row // STRIDE - up, column // STRIDE - left
    down, across = row - y * STRIDE, column - x * STRIDE
    there = there & (y >= 0) & (y < LY) & (down < WINDOW_ROWS) & (x >= 0) & (x < LX) & (across < COLUMNS)
    return (b * (LY * LX) + y * LX + x) * K + (down * COLUMNS + across) * TYPES + kind, there


@triton.jit(do_not_specialize=("B",))
@no_type_check
def share_kernel(
    logits, B, n: tl.constexpr, J: tl.constexpr, LY: tl.constexpr, LX: tl.constexpr, K: tl.constexpr,
    WIDTH: tl.constexpr, TYPES: tl.constexpr, WINDOW_ROWS: tl.constexpr, COLUMNS: tl.constexpr, STRIDE: tl.constexpr,
    UP: tl.constexpr, LEFT: tl.constexpr, N: tl.constexpr, Jp: tl.constexpr,
):  # fmt: skip
    """Logits (B L K J) become couplings in place: the softmax of each child over all its parents."""
    _, b, row, column, kind, there = child(tl.program_id(0), B, N, n, WIDTH, TYPES)
    j = tl.arange(0, Jp)[None, :]
    tiles = ()
    peak = tl.full([N, Jp], float("-inf"), tl.float32)
    for up in tl.static_range(UP):
        for left in tl.static_range(LEFT):
            link, inside = window(b, row, column, kind, there, up, left, LY, LX, K, TYPES, WINDOW_ROWS, COLUMNS, STRIDE)
            x = tl.load(logits + link * J + j, mask=inside & (j < J), other=float("-inf"))
            peak = tl.maximum(peak, x)
            tiles += (x,)
    top = tl.max(peak, axis=1, keep_dims=True)
    alone = top == float("-inf")  # a child in no window has nothing to share
    top = tl.where(alone, 0.0, top)
    total = tl.zeros([N, Jp], tl.float32)
    for i in tl.static_range(UP * LEFT):
        total += tl.exp(tiles[i] - top)
    whole = 1.0 / tl.where(alone, 1.0, tl.sum(total, axis=1, keep_dims=True))
    for up in tl.static_range(UP):
        for left in tl.static_range(LEFT):
            link, inside = window(b, row, column, kind, there, up, left, LY, LX, K, TYPES, WINDOW_ROWS, COLUMNS, STRIDE)
            share = tl.exp(tiles[up * LEFT + left] - top) * whole
            tl.store(logits + link * J + j, share, mask=inside & (j < J))


@triton.jit(do_not_specialize=("B", "adds"))
@no_type_check
def share_gradient_kernel(
    couplings, slopes, grad_couplings, activations, at_activations, B, adds,
    n: tl.constexpr, J: tl.constexpr, LY: tl.constexpr, LX: tl.constexpr, K: tl.constexpr,
    WIDTH: tl.constexpr, TYPES: tl.constexpr, WINDOW_ROWS: tl.constexpr, COLUMNS: tl.constexpr, STRIDE: tl.constexpr,
    UP: tl.constexpr, LEFT: tl.constexpr, N: tl.constexpr, Jp: tl.constexpr,
):  # fmt: skip
    """The gradients at weights, `slopes` (B L K J), become those at logits in place; a weight is coupling times
    activation, whose gradient (B n) is written, or if it `adds` added to.
    """
    at, b, row, column, kind, there = child(tl.program_id(0), B, N, n, WIDTH, TYPES)
    j = tl.arange(0, Jp)[None, :]
    a = tl.load(activations + at, mask=there, other=0.0)  # N 1
    shares, tiles = (), ()
    at_a = tl.zeros([N, Jp], tl.float32)
    mean = tl.zeros([N, Jp], tl.float32)
    for up in tl.static_range(UP):
        for left in tl.static_range(LEFT):
            link, inside = window(b, row, column, kind, there, up, left, LY, LX, K, TYPES, WINDOW_ROWS, COLUMNS, STRIDE)
            inside = inside & (j < J)
            share = tl.load(couplings + link * J + j, mask=inside, other=0.0)
            slope = tl.load(slopes + link * J + j, mask=inside, other=0.0)
            at_a += share * slope
            slope *= a
            if grad_couplings is not None:
                slope += tl.load(grad_couplings + link * J + j, mask=inside, other=0.0)
            mean += share * slope
            shares += (share,)
            tiles += (slope,)
    usual = tl.sum(mean, axis=1, keep_dims=True)
    for up in tl.static_range(UP):
        for left in tl.static_range(LEFT):
            link, inside = window(b, row, column, kind, there, up, left, LY, LX, K, TYPES, WINDOW_ROWS, COLUMNS, STRIDE)
            slope = shares[up * LEFT + left] * (tiles[up * LEFT + left] - usual)
            tl.store(slopes + link * J + j, slope, mask=inside & (j < J))
    total = tl.sum(at_a, axis=1, keep_dims=True)
    total += tl.load(at_activations + at, mask=there & (b < B * adds), other=0.0)
    tl.store(at_activations + at, total, mask=there)


@triton.jit(do_not_specialize=("B",))
@no_type_check
def gather_kernel(
    by_window, first, at_poses, at_activations, B, ADD: tl.constexpr,
    n: tl.constexpr, LY: tl.constexpr, LX: tl.constexpr, K: tl.constexpr,
    WIDTH: tl.constexpr, TYPES: tl.constexpr, WINDOW_ROWS: tl.constexpr, COLUMNS: tl.constexpr, STRIDE: tl.constexpr,
    UP: tl.constexpr, LEFT: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Sums over each child's windows: `by_window` (B L K 16) to poses (B n 16), `first` (B L K) to activations (B n),
    which with ADD have something already.
    """
    at, b, row, column, kind, there = child(tl.program_id(0), B, N, n, WIDTH, TYPES)
    entry = tl.arange(0, 16)[None, :]
    poses = tl.zeros([N, 16], tl.float32)
    total = tl.zeros([N, 1], tl.float32)
    if ADD:
        total += tl.load(at_activations + at, mask=there, other=0.0)
    for up in tl.static_range(UP):
        for left in tl.static_range(LEFT):
            link, inside = window(b, row, column, kind, there, up, left, LY, LX, K, TYPES, WINDOW_ROWS, COLUMNS, STRIDE)
            poses += tl.load(by_window + link * 16 + entry, mask=inside, other=0.0)
            total += tl.load(first + link, mask=inside, other=0.0)
    tl.store(at_poses + at * 16 + entry, poses, mask=there)
    tl.store(at_activations + at, total, mask=there)
