"""Routing of small layers in one kernel, and its gradient in another: one program takes a whole sample.

All votes of a sample stay in its program's registers, so a sum over lower capsules needs no other program, and all
iterations run without going back to memory: most of a small layer's time would otherwise go into launching kernels. The
tiles are those of `votes.py`, [J, G, R, Dh, 4], where the G x R senders are the sample's lower capsules, filled up to a
power of two. Vectors of the parents are [J, G, 1, Dh, 4]: each group of senders has its own copy.

Weights are read as the layer stores them. There the D entries of one upper capsule lie side by side, and a warp that
took 16 bytes of each would waste most of what memory hands it. So lanes that upper capsules leave free share a vote:
tiles are loaded as [J, G, R, Q, W], which gives W / 4 lanes to the last axis, and then reshaped, which moves nothing.

What is filled up is read from the nearest entry that is there: setting such votes to zero afterwards takes fewer
instructions than masking all loads, and zero votes get zero gradients.
"""

from typing import Any, NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from gammacaps.ops.routing.kernels.votes import (
    couple,
    distance_gradient,
    dot,
    shorten,
    shorten_gradient,
    softmax_gradient,
    squash,
    squash_gradient,
    times,
)
from gammacaps.ops.routing.rules import is_sda, scale

# Entries of votes in a thread: its gradient keeps as many again, and the sums of all iterations, in 255 registers.
ENTRIES_A_THREAD = 32
# More warps than 8 could not have 255 registers a thread.
MOST_WARPS = 8
# Beyond this, 8 warps would keep most of their votes in memory after all.
MOST_ENTRIES = 16384
# The kernels' code grows with every row of weights; `stack` doubles so many times at most.
LEVELS = tl.constexpr(5)
MOST_ROWS = 2**LEVELS.value


class Tile(NamedTuple):
    """How the votes of one sample are laid out, and the warps that hold them."""

    G: int
    R: int
    Jp: int
    Q: int
    W: int
    warps: int


def tile_of(I: int, J: int, D: int) -> Tile:
    """Upper capsules take the first lanes, entries those left of a warp, and groups of lower capsules all others."""
    Ip, Jp, Dp = (triton.next_power_of_2(n) for n in (I, J, max(4, D)))
    warps = min(MOST_WARPS, max(1, Ip * Jp * Dp // (32 * ENTRIES_A_THREAD)))
    W = min(Dp, 4 * max(1, 32 // Jp))
    G = min(Ip, max(1, 32 * warps * 4 // (Jp * W)))
    return Tile(G, Ip // G, Jp, Dp // W, W, warps)


def fits(I: int, J: int, d: int, D: int) -> bool:
    """Whether the votes of one sample fit in a program."""
    G, R, Jp, Q, W, _ = tile_of(I, J, D)
    return G * R * Jp * Q * W <= MOST_ENTRIES and d <= MOST_ROWS


@triton.jit
@no_type_check
def axes_of(G: tl.constexpr, R: tl.constexpr, Jp: tl.constexpr, Q: tl.constexpr, W: tl.constexpr):
    """Numbers of upper capsules [J, 1, 1], lower capsules [1, G, R] and entries [1, 1, 1, Q, W]."""
    j = tl.arange(0, Jp)[:, None, None]
    i = (R * tl.arange(0, G)[:, None] + tl.arange(0, R)[None, :])[None, :, :]
    entry = (W * tl.arange(0, Q)[:, None] + tl.arange(0, W)[None, :])[None, None, None, :, :]
    return j, i, entry


@triton.jit
@no_type_check
def at_vectors(x):
    """Numbers [J, G, R], shaped to meet vectors: [J, G, R, 1, 1]."""
    return x[:, :, :, None, None]


@triton.jit
@no_type_check
def with_last(x, W: tl.constexpr):
    """Vectors with a last axis of W entries: Q x W from fours, or fours from those."""
    return tl.reshape(x, (x.shape[0], x.shape[1], x.shape[2], x.shape[3] * x.shape[4] // W, W))


@triton.jit
@no_type_check
def weights_of(
    weight, j, i, entry, si: tl.constexpr, sj: tl.constexpr, se: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Pointers to the first rows of all weights, [J, G, R, Q, W]."""
    if i.shape[1] * i.shape[2] > I:
        i = tl.minimum(i, I - 1)
    if j.shape[0] > J:
        j = tl.minimum(j, J - 1)
    if entry.shape[3] * entry.shape[4] > D:
        # Whole groups first, so that four neighbours stay neighbours where D is a multiple of 4.
        entry = 4 * tl.minimum(entry // 4, (D - 1) // 4) + entry % 4
        if D % 4 != 0:
            entry = tl.minimum(entry, D - 1)
    return weight + at_vectors(i * si + j * sj) + entry * se


@triton.jit
@no_type_check
def votes_of(
    poses, rows, j, i, entry, sd: tl.constexpr, SDA: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, d: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Votes [J, G, R, Dh, 4], how much each was shortened [J, G, R], and the squared lengths of senders [1, G, R]."""
    raw = tl.zeros((j.shape[0], i.shape[1], i.shape[2], entry.shape[3], entry.shape[4]), tl.float32)
    square = tl.zeros(i.shape, tl.float32)
    for row in tl.static_range(d):
        # The gradient reads these again. To be kept in the cache until then also makes them other loads than the second
        # ones; the compiler would else keep what they read in registers, of which there are too few.
        p = tl.load(poses + i * d + row, mask=i < I, other=0.0, eviction_policy="evict_last").to(tl.float32)
        raw += tl.load(rows + row * sd, eviction_policy="evict_last").to(tl.float32) * at_vectors(p)
        square += p * p
    # Lower capsules that are not there have zero poses already.
    raw = tl.where(at_vectors(j < J) & (entry < D), raw, 0.0)
    u, ratio = shorten(with_last(raw, 4), tl.sqrt(square), SDA)
    return u, ratio, square


@triton.jit
@no_type_check
def over_senders(x):
    """The sum over lower capsules of vectors [J, G, R, Dh, 4], for each group the same [J, G, 1, Dh, 4]."""
    by_group = tl.sum(x, axis=2, keep_dims=True)
    return tl.broadcast_to(tl.sum(by_group, axis=1, keep_dims=True), by_group.shape)


@triton.jit
@no_type_check
def vectors_of(vectors, j, i, entry, J: tl.constexpr, D: tl.constexpr):
    """Pointers to vectors (J, D), for each group the same [J, G, 1, Q, W], and which entries are there."""
    at = tl.broadcast_to(at_vectors(j) * D + entry, (j.shape[0], i.shape[1], 1, entry.shape[3], entry.shape[4]))
    return vectors + at, at_vectors(j < J) & (entry < D)


@triton.jit
@no_type_check
def load_vectors(vectors, j, i, entry, J: tl.constexpr, D: tl.constexpr):
    """Vectors (J, D) as [J, G, 1, Dh, 4]."""
    at, there = vectors_of(vectors, j, i, entry, J, D)
    return with_last(tl.load(at, mask=there, other=0.0).to(tl.float32), 4)


@triton.jit
@no_type_check
def stack(rows, d: tl.constexpr):
    """d tensors [1, G, R] as one, filled up to a power of two, [1, G, R, dp]."""
    dp: tl.constexpr = triton.next_power_of_2(d)
    G: tl.constexpr = rows[0].shape[1]
    R: tl.constexpr = rows[0].shape[2]
    for _ in tl.static_range(d, dp):
        rows += (rows[0],)
    for level in tl.static_range(1, LEVELS + 1):
        if dp >> level > 0:
            pairs = ()
            for row in tl.static_range(dp >> level):
                pairs += (tl.join(rows[row], rows[row + (dp >> level)]),)  # the new axis is the last
            rows = pairs
    return tl.reshape(rows[0], (1, G, R, dp))


@triton.jit
@no_type_check
def iterate(u, bias, scale, SDA: tl.constexpr, ITERATIONS: tl.constexpr, J: tl.constexpr):
    """Routes votes u: each iteration's sums s; and what pulls, couplings and distances of each but the first."""
    s = over_senders(u) * (1.0 / J) + bias
    pull = tl.zeros_like(s)
    sums, pulls, couplings, distances = (s,), (), (), ()
    for _ in tl.static_range(1, ITERATIONS):
        # RBA is pulled by the poses of all iterations so far together.
        pull = squash(s) if SDA else pull + squash(s)
        c, distance = couple(u, pull, J, scale, SDA)
        s = over_senders(times(u, c)) + bias
        sums += (s,)
        pulls += (pull,)
        couplings += (c,)
        distances += (distance,)
    return sums, pulls, couplings, distances


@triton.jit
@no_type_check
def route_kernel(
    poses, weight, bias, v, couplings, scale, SDA: tl.constexpr, ITERATIONS: tl.constexpr,
    si: tl.constexpr, sj: tl.constexpr, sd: tl.constexpr, se: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, d: tl.constexpr, D: tl.constexpr,
    G: tl.constexpr, R: tl.constexpr, Jp: tl.constexpr, Q: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """All iterations for one sample: v (B, J, D) and, if there is memory for them, the last couplings (B, I, J)."""
    b = tl.program_id(0).to(tl.int64)
    j, i, entry = axes_of(G, R, Jp, Q, W)
    rows = weights_of(weight, j, i, entry, si, sj, se, I, J, D)
    offset = 0.0 if bias is None else load_vectors(bias, j, i, entry, J, D)
    u, _, _ = votes_of(poses + b * (I * d), rows, j, i, entry, sd, SDA, I, J, d, D)
    sums, _, coupled, _ = iterate(u, offset, scale, SDA, ITERATIONS, J)
    # The first group stores for all, so that no vector has to change hands.
    at, there = vectors_of(v + b * (J * D), j, i, entry, J, D)
    mine = at_vectors(tl.arange(0, G)[None, :, None] == 0)
    tl.store(at, with_last(squash(sums[ITERATIONS - 1]), W), mask=there & mine)
    if couplings is not None:
        c = tl.full((Jp, G, R), 1.0 / J, tl.float32) if ITERATIONS == 1 else coupled[ITERATIONS - 2]
        tl.store(couplings + b * (I * J) + i * J + j, c, mask=(i < I) & (j < J))


@triton.jit
@no_type_check
def gradient_kernel(
    grad_v, grad_c, poses, weight, bias, grad_poses, scale, SDA: tl.constexpr, ITERATIONS: tl.constexpr,
    si: tl.constexpr, sj: tl.constexpr, sd: tl.constexpr, se: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, d: tl.constexpr, D: tl.constexpr,
    G: tl.constexpr, R: tl.constexpr, Jp: tl.constexpr, Q: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """The gradient of one sample's poses (B, I, d), for which it is routed once more."""
    b = tl.program_id(0).to(tl.int64)
    poses += b * (I * d)
    j, i, entry = axes_of(G, R, Jp, Q, W)
    rows = weights_of(weight, j, i, entry, si, sj, se, I, J, D)
    offset = 0.0 if bias is None else load_vectors(bias, j, i, entry, J, D)
    if grad_v is None:
        grad = tl.zeros((Jp, G, 1, Q * W // 4, 4), tl.float32)
    else:
        grad = load_vectors(grad_v + b * (J * D), j, i, entry, J, D)
    u, ratio, square = votes_of(poses, rows, j, i, entry, sd, SDA, I, J, d, D)
    sums, pulls, couplings, distances = iterate(u, offset, scale, SDA, ITERATIONS, J)

    grad_u = tl.zeros_like(u)
    so_far = tl.zeros_like(grad)
    for step in tl.static_range(1, ITERATIONS):
        gs = squash_gradient(sums[ITERATIONS - step], grad)
        pull, c = pulls[ITERATIONS - step - 1], couplings[ITERATIONS - step - 1]
        grad_u += times(gs, c)
        slope = dot(u, gs)  # J G R
        if step == 1 and grad_c is not None:
            at = b * (I * J) + i * J + j
            slope += tl.load(grad_c + at, mask=(i < I) & (j < J), other=0.0).to(tl.float32)
        slope = softmax_gradient(c, slope)
        if SDA:
            slope = distance_gradient(distances[ITERATIONS - step - 1], slope, J, scale)
            apart = times(u - pull, slope)
            grad_u += apart
            grad = -over_senders(apart)
        else:
            grad_u += times(pull, slope)
            so_far += over_senders(times(u, slope))  # v pulls in all later iterations, not only in the next
            grad = so_far
    grad_u += squash_gradient(sums[0], grad) * (1.0 / J)

    if SDA:
        grad_u, along = shorten_gradient(grad_u, u, ratio, square)
        stretch = tl.sum(along, axis=0, keep_dims=True)  # 1 G R
    by_row = ()
    for row in tl.static_range(d):
        grad = tl.sum(dot(with_last(tl.load(rows + row * sd).to(tl.float32), 4), grad_u), axis=0, keep_dims=True)
        if SDA:
            grad += stretch * tl.load(poses + i * d + row, mask=i < I, other=0.0).to(tl.float32)
        by_row += (grad,)  # 1 G R
    row = tl.arange(0, triton.next_power_of_2(d))[None, None, None, :]
    # Stored together: each would have to pass from the threads that hold it to those that store it, behind a barrier.
    at = grad_poses + b * (I * d) + i[:, :, :, None] * d + row
    tl.store(at, stack(by_row, d), mask=(i < I)[:, :, :, None] & (row < d))


def launch(kernel: Any, tensors: tuple[Tensor | None, ...], poses: Tensor, weight: Tensor, rule: str, n: int) -> None:
    """Runs a kernel over all samples, n iterations."""
    I, J, d, D = weight.shape
    si, sj, sd, se = weight.stride()
    G, R, Jp, Q, W, warps = tile_of(I, J, D)
    kernel[len(poses),](
        *tensors, scale(J), SDA=is_sda(rule), ITERATIONS=n, si=si, sj=sj, sd=sd, se=se,
        I=I, J=J, d=d, D=D, G=G, R=R, Jp=Jp, Q=Q, W=W, num_warps=warps,
    )  # fmt: skip


def forward(
    poses: Tensor, weight: Tensor, bias: Tensor | None, rule: str, iterations: int, couplings: bool
) -> tuple[Tensor, Tensor | None]:
    """Routes poses (B, I, d) by weights (I, J, d, D) to poses (B, J, D); the couplings are (B, I, J), if asked for."""
    B, (I, J, _, D) = len(poses), weight.shape
    poses, bias = poses.contiguous(), None if bias is None else bias.contiguous()
    v = torch.empty(B, J, D, dtype=torch.float32, device=poses.device)
    c = torch.empty(B, I, J, dtype=torch.float32, device=poses.device) if couplings else None
    launch(route_kernel, (poses, weight, bias, v, c), poses, weight, rule, iterations)
    return v, c


def backward(
    grad_v: Tensor | None,
    grad_c: Tensor | None,
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rule: str,
    iterations: int,
) -> Tensor:
    """The gradient of the poses (B, I, d), in float32, from those of the parents' poses and of the couplings."""
    grad_v, grad_c, bias = (None if t is None else t.contiguous() for t in (grad_v, grad_c, bias))
    poses = poses.contiguous()
    gradient = torch.empty(poses.shape, dtype=torch.float32, device=poses.device)
    launch(gradient_kernel, (grad_v, grad_c, poses, weight, bias, gradient), poses, weight, rule, iterations)
    return gradient
