"""Routing to many upper capsules on a GPU: votes are recomputed wherever they are needed, and never stored.

With thousands of parents the votes (B I J D) would fill the memory many times over. Here every kernel computes
the votes it needs from a tile of weights (one lower capsule, JT parents), which it uses for P samples at once.
The work is cut so that whatever is a formula of single numbers is apart from whatever needs the votes:

    agree     votes -> for each link (i, b, j) its distance |u - v| or agreement u . V, and in the gradient u . gs
    couple    numbers of the links -> couplings c, the softmax over each row of J parents
    uncouple  the same and the gradient at c -> couplings c and the slopes a, the gradient at the votes' own term
    gather    votes and one number for each link -> the sum over the lower capsules
    poses_gradient, weight_gradient
              votes, c and a of all iterations -> the gradient at the votes, summed over parents or over samples

Numbers of the links are kept for a few lower capsules at a time (`WORKSPACE` bytes), never for all of them. They
lie in memory as (i, b, j). All sums have a fixed order, so results do not vary from run to run.
"""

from collections.abc import Iterator
from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from gammacaps.ops import reference
from gammacaps.ops.adjoint import squash_gradient
from gammacaps.ops.reference import scale, squash

# What the numbers of the links may take up: a few lower capsules fill a GPU with work, and more would not help.
WORKSPACE = 64 * 2**20
# Programs to cut the work into: about two for every place on a large GPU (132 processors, 4 places each).
PROGRAMS = 1024
# Most partial sums that `gather` leaves to be added up.
SPLITS = 8
# Entries of a tile of weights for one d: 16 bytes for each of the 128 threads of a program.
TILE = 512
WARPS = 4
# Samples and lower capsules of a tile (P and N below): what stays in a thread's 255 registers, at any d and D.
LINKS_TILE = (8, 1)
POSES_TILE = (2, 2)
WEIGHT_TILE = (2, 2)

_TINY = tl.constexpr(reference.TINY)
# Nearer than this, the direction from parent to vote is rounding error (see `adjoint.distance_gradient`).
_NEAR = tl.constexpr(100 * torch.finfo(torch.float32).eps)


# Tiles have five axes: JT parents, P samples, N lower capsules, Q entries of the lower and DP of the upper capsules
# (D filled up to a power of two). Triton gives a thread 16 bytes of the last axis, hands out lanes and warps over the
# rest of that axis and then over the first one, and keeps what lies between in registers. So a weight, once loaded,
# meets P samples, and a parent's vector N lower capsules, without leaving their thread.


@triton.jit
@no_type_check
def _place(
    first_b, first_j, left, B, J, stride_i, stride_j, stride_e,
    D: tl.constexpr, P: tl.constexpr, N: tl.constexpr, JT: tl.constexpr,
):  # fmt: skip
    """Offsets into vectors (JT P 1 1 DP) and weights (JT 1 N 1 DP), and the masks of vectors, weights and links.

    The lower capsules count from the tile's first, of which `left` are there.
    """
    j = first_j + tl.arange(0, JT)[:, None, None, None, None]
    b = first_b + tl.arange(0, P)[None, :, None, None, None]
    n = tl.arange(0, N)[None, None, :, None, None]
    e = tl.arange(0, triton.next_power_of_2(D))[None, None, None, None, :]
    at_vector = (b * J + j) * D + e
    at_weight = j.to(tl.int64) * stride_j + n.to(tl.int64) * stride_i + e.to(tl.int64) * stride_e
    in_entry = (j < J) & (e < D)
    return at_vector, at_weight, in_entry & (b < B), in_entry & (n < left), (b < B) & (j < J) & (n < left)


@triton.jit
@no_type_check
def _place_links(first_b, first_j, link_i, link_b, P: tl.constexpr, N: tl.constexpr, JT: tl.constexpr):
    """Offsets into the numbers of the links (JT P N 1 1), from the tile's first lower capsule."""
    j = first_j + tl.arange(0, JT)[:, None, None, None, None]
    b = first_b + tl.arange(0, P)[None, :, None, None, None]
    return b.to(tl.int64) * link_b + tl.arange(0, N)[None, None, :, None, None] * link_i + j


@triton.jit
@no_type_check
def _vote(
    poses, most, weight, at, inside, first_i, first_b, left, stride_d, padded,
    SDA: tl.constexpr, d: tl.constexpr, D: tl.constexpr, P: tl.constexpr, N: tl.constexpr, JT: tl.constexpr,
):  # fmt: skip
    """Votes (JT P N 1 DP), their capsules' lengths (1 P N 1 1), and what shortened them; `weight` is at first_i."""
    n = tl.arange(0, N)[None, :]
    i, b = (first_i + n).to(tl.int64), first_b + tl.arange(0, P)[:, None]
    row = poses + i * d * padded + b  # P N
    there = n < left
    vote = tl.zeros([JT, P, N, 1, triton.next_power_of_2(D)], tl.float32)
    STEP: tl.constexpr = d if d <= 16 else 8  # a longer row without a loop would want too many registers
    for first_q in range(0, d, STEP):
        for q in tl.static_range(STEP):
            more = first_q + q < d
            entry = tl.load(row, mask=there & more, other=0)[None, :, :, None, None]  # 1 P N 1 1
            vote += entry * tl.load(weight + at, mask=inside & more, other=0).to(tl.float32)
            row += padded
            weight += stride_d
    longest = tl.load(most + i * padded + b, mask=there, other=0)[None, :, :, None, None]
    ratio = tl.full([1, 1, 1, 1, 1], 1, tl.float32)
    if SDA:
        size = tl.sqrt(tl.sum(vote * vote, axis=4, keep_dims=True))  # JT P N 1 1
        ratio = tl.where(size > longest, longest / tl.maximum(size, _TINY), 1.0)
        vote = vote * ratio
    return vote, longest, ratio


@triton.jit
@no_type_check
def _agree_kernel(
    poses, most, weight, toward, grad_s, links, slopes,
    count, each, B, J, padded, stride_i, stride_j, stride_d, stride_e, link_i, link_b,
    SDA: tl.constexpr, BACK: tl.constexpr, d: tl.constexpr, D: tl.constexpr, P: tl.constexpr, JT: tl.constexpr,
):  # fmt: skip
    """links = |u - v| (SDA) or u . V (RBA), and slopes = u . gs, for P samples, JT parents, `each` lower capsules."""
    first_b, first_j = tl.program_id(0) * P, tl.program_id(1) * JT
    at_vector, at, in_vector, in_weight, in_link = _place(
        first_b, first_j, 1, B, J, stride_i, stride_j, stride_e, D, P, 1, JT
    )
    at_link = _place_links(first_b, first_j, link_i, link_b, P, 1, JT)
    v = tl.load(toward + at_vector, mask=in_vector, other=0)
    g = tl.load(grad_s + at_vector, mask=in_vector, other=0) if BACK else v
    i = tl.program_id(2) * each
    last = tl.minimum(i + each, count)
    weight += i.to(tl.int64) * stride_i
    while i < last:  # not `for`: the interpreter of Triton 3.6 takes no range of tensors with NumPy 2.4
        u, _, _ = _vote(poses, most, weight, at, in_weight, i, first_b, 1, stride_d, padded, SDA, d, D, P, 1, JT)
        if SDA:
            number = tl.sqrt(tl.sum((u - v) * (u - v), axis=4, keep_dims=True))  # JT P 1 1 1
        else:
            number = tl.sum(u * v, axis=4, keep_dims=True)
        tl.store(links + i * link_i + at_link, number, mask=in_link)
        if BACK:
            tl.store(slopes + i * link_i + at_link, tl.sum(u * g, axis=4, keep_dims=True), mask=in_link)
        weight += stride_i
        i += 1


@triton.jit
@no_type_check
def _gather_kernel(
    poses, most, weight, toward, factors, partial,
    count, each, B, J, padded, stride_i, stride_j, stride_d, stride_e, link_i, link_b,
    SDA: tl.constexpr, EVEN: tl.constexpr, CENTRED: tl.constexpr,
    d: tl.constexpr, D: tl.constexpr, P: tl.constexpr, JT: tl.constexpr,
):  # fmt: skip
    """Adds sum_i factor_ij u_ij (of u_ij - v_j if CENTRED) to this program's partial sum; EVEN: all factors are 1."""
    first_b, first_j = tl.program_id(0) * P, tl.program_id(1) * JT
    at_vector, at, in_vector, in_weight, in_link = _place(
        first_b, first_j, 1, B, J, stride_i, stride_j, stride_e, D, P, 1, JT
    )
    at_link = _place_links(first_b, first_j, link_i, link_b, P, 1, JT)
    v = tl.load(toward + at_vector, mask=in_vector, other=0) if CENTRED else 0.0
    partial += tl.program_id(2).to(tl.int64) * B * J * D
    total = tl.load(partial + at_vector, mask=in_vector, other=0)
    i = tl.program_id(2) * each
    last = tl.minimum(i + each, count)
    weight += i.to(tl.int64) * stride_i
    while i < last:
        # Before the votes: Triton takes the layout of the sum from the last load, which must be the weights'.
        factor = 1.0 if EVEN else tl.load(factors + i * link_i + at_link, mask=in_link, other=0)  # JT P 1 1 1
        u, _, _ = _vote(poses, most, weight, at, in_weight, i, first_b, 1, stride_d, padded, SDA, d, D, P, 1, JT)
        total += factor * (u - v)
        weight += stride_i
        i += 1
    tl.store(partial + at_vector, total, mask=in_vector)


@triton.jit
@no_type_check
def _softmax(number, inside, J, SCALE: tl.constexpr, SDA: tl.constexpr):
    """Couplings over one row of parents from its distances (SDA) or agreements (RBA), and the mean distance."""
    usual = tl.maximum(tl.sum(tl.where(inside, number, 0.0), axis=0) / J, _TINY)
    if SDA:
        # The least distance is at most the mean, so the largest exponent is at least SCALE: no maximum is needed.
        power = tl.where(inside, tl.exp(number / usual * SCALE), 0.0)
    else:
        power = tl.where(inside, tl.exp(number - tl.max(tl.where(inside, number, float("-inf")), axis=0)), 0.0)
    return power / tl.sum(power, axis=0), usual


@triton.jit
@no_type_check
def _couple_kernel(
    links, couplings, J, link_i, link_b, out_i, out_b, SCALE: tl.constexpr, SDA: tl.constexpr, ROW: tl.constexpr
):
    """couplings = softmax over the parents, for one lower capsule of one sample."""
    i, b = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    j = tl.arange(0, ROW)
    inside = j < J
    number = tl.load(links + i * link_i + b * link_b + j, mask=inside, other=0)
    c, _ = _softmax(number, inside, J, SCALE, SDA)
    tl.store(couplings + i * out_i + b * out_b + j, c, mask=inside)


@triton.jit
@no_type_check
def _uncouple_kernel(
    links, slopes, grad_c, J, link_i, link_b, grad_i, grad_b, grad_j,
    SCALE: tl.constexpr, SDA: tl.constexpr, ADD: tl.constexpr, ROW: tl.constexpr,
):  # fmt: skip
    """links: numbers -> couplings; slopes: u . gs -> gradient at the distance over the distance (SDA) or at b (RBA)."""
    i, b = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    j = tl.arange(0, ROW)
    inside = j < J
    at = i * link_i + b * link_b + j
    number = tl.load(links + at, mask=inside, other=0)
    c, usual = _softmax(number, inside, J, SCALE, SDA)
    slope = tl.load(slopes + at, mask=inside, other=0)
    if ADD:
        slope += tl.load(grad_c + i * grad_i + b * grad_b + j.to(tl.int64) * grad_j, mask=inside, other=0)
    slope = c * (slope - tl.sum(c * slope, axis=0))
    if SDA:
        # Where the mean was raised to TINY it is a constant, and so has no gradient.
        mean = tl.where(usual > _TINY, tl.sum(slope * (number / usual), axis=0) / J, 0.0)
        slope = (slope - mean) * (SCALE / usual)
        slope = tl.where(number > _NEAR, slope / tl.maximum(number, _NEAR), 0.0)
    tl.store(links + at, c, mask=inside)
    tl.store(slopes + at, slope, mask=inside)


@triton.jit
@no_type_check
def _vote_gradient(
    u, longest, ratio, grad_s, toward, couplings, slopes, at_vector, in_vector, at_link, in_link, B, J, links,
    SDA: tl.constexpr, R: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The gradient at the votes before they were shortened (JT P N 1 DP), and at their capsules' lengths."""
    total = tl.load(grad_s + at_vector, mask=in_vector, other=0) / J
    for k in tl.static_range(R - 1):
        c = tl.load(couplings + k * links + at_link, mask=in_link, other=0)  # JT P N 1 1
        a = tl.load(slopes + k * links + at_link, mask=in_link, other=0)  # JT P N 1 1
        v = tl.load(toward + k * B * J * D + at_vector, mask=in_vector, other=0)  # JT P 1 1 DP
        total += c * tl.load(grad_s + (k + 1) * B * J * D + at_vector, mask=in_vector, other=0)
        total += a * (u - v) if SDA else a * v
    along = tl.zeros([1, 1, 1, 1, 1], tl.float32)
    if SDA:
        # Where a vote was shortened, its length is the capsule's: what points along it moves the capsule.
        longest = tl.maximum(longest, _TINY)
        along = tl.where(ratio < 1, tl.sum(total * u, axis=4, keep_dims=True) / longest, 0.0)  # JT P N 1 1
        total = ratio * (total - u * (along / longest))
    return total, along


@triton.jit
@no_type_check
def _poses_gradient_kernel(
    poses, most, weight, grad_s, toward, couplings, slopes, out,
    count, B, J, padded, stride_i, stride_j, stride_d, stride_e, link_i, link_b, links,
    SDA: tl.constexpr, R: tl.constexpr, d: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, P: tl.constexpr, N: tl.constexpr, JT: tl.constexpr,
):  # fmt: skip
    """out = sum over all parents, for N lower capsules, P samples and Q of the capsules' d entries."""
    DP: tl.constexpr = triton.next_power_of_2(D)
    FOUR: tl.constexpr = min(DP, 4)
    first_i, first_b, first_q = tl.program_id(0) * N, tl.program_id(1) * P, tl.program_id(2) * Q
    left = count - first_i
    weight += first_i.to(tl.int64) * stride_i
    couplings += first_i.to(tl.int64) * link_i
    slopes += first_i.to(tl.int64) * link_i
    q = first_q + tl.arange(0, Q)[None, None, None, :, None]
    # A thread holds four entries of a vote: sums over these stay in the thread until the loop has ended.
    gathered = tl.zeros([JT, P, N, Q, DP // FOUR], tl.float32)
    lengthened = tl.zeros([JT, P, N, 1, 1], tl.float32)
    first_j = 0
    while first_j < J:
        at_vector, at, in_vector, in_weight, in_link = _place(
            first_b, first_j, left, B, J, stride_i, stride_j, stride_e, D, P, N, JT
        )
        at_link = _place_links(first_b, first_j, link_i, link_b, P, N, JT)
        u, longest, ratio = _vote(
            poses, most, weight, at, in_weight, first_i, first_b, left, stride_d, padded, SDA, d, D, P, N, JT
        )
        grad, along = _vote_gradient(
            u, longest, ratio, grad_s, toward, couplings, slopes, at_vector, in_vector, at_link, in_link, B, J, links,
            SDA, R, D,
        )  # fmt: skip
        rows = tl.load(weight + q.to(tl.int64) * stride_d + at, mask=in_weight & (q < d), other=0)  # JT 1 N Q DP
        product = rows.to(tl.float32) * grad  # JT P N Q DP
        gathered += tl.sum(tl.reshape(product, [JT, P, N, Q, DP // FOUR, FOUR]), axis=5)
        lengthened += along
        first_j += JT
    n = tl.arange(0, N)[None, :, None]
    i, b = (first_i + n).to(tl.int64), first_b + tl.arange(0, P)[:, None, None]
    q = first_q + tl.arange(0, Q)[None, None, :]
    inside = (n < left) & (b < B) & (q < d)
    result = tl.sum(tl.sum(gathered, axis=4), axis=0)  # P N Q
    if SDA:
        pose = tl.load(poses + (i * d + q) * padded + b, mask=inside, other=0)
        longest = tl.maximum(tl.load(most + i * padded + b, mask=n < left, other=0), _TINY)  # P N 1
        result += pose * (tl.sum(tl.sum(lengthened, axis=4), axis=0) / longest)
    tl.store(out + (i * d + q) * padded + b, result, mask=inside)


@triton.jit
@no_type_check
def _weight_gradient_kernel(
    poses, most, weight, grad_s, toward, couplings, slopes, out,
    count, B, J, padded, stride_i, stride_j, stride_d, stride_e, out_i, out_j, out_d, out_e, link_i, link_b, links,
    SDA: tl.constexpr, R: tl.constexpr, d: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, P: tl.constexpr, N: tl.constexpr, JT: tl.constexpr,
):  # fmt: skip
    """out = sum over all samples, for N lower capsules, JT parents and Q of the capsules' d entries."""
    DP: tl.constexpr = triton.next_power_of_2(D)
    first_i, first_j, first_q = tl.program_id(0) * N, tl.program_id(1) * JT, tl.program_id(2) * Q
    left = count - first_i
    weight += first_i.to(tl.int64) * stride_i
    couplings += first_i.to(tl.int64) * link_i
    slopes += first_i.to(tl.int64) * link_i
    total = tl.zeros([JT, 1, N, Q, DP], tl.float32)
    first_b = 0
    while first_b < B:
        at_vector, at, in_vector, in_weight, in_link = _place(
            first_b, first_j, left, B, J, stride_i, stride_j, stride_e, D, P, N, JT
        )
        at_link = _place_links(first_b, first_j, link_i, link_b, P, N, JT)
        u, longest, ratio = _vote(
            poses, most, weight, at, in_weight, first_i, first_b, left, stride_d, padded, SDA, d, D, P, N, JT
        )
        grad, _ = _vote_gradient(
            u, longest, ratio, grad_s, toward, couplings, slopes, at_vector, in_vector, at_link, in_link, B, J, links,
            SDA, R, D,
        )  # fmt: skip
        n, q = tl.arange(0, N)[None, :, None], first_q + tl.arange(0, Q)[None, None, :]
        row = poses + ((first_i + n).to(tl.int64) * d + q) * padded + first_b + tl.arange(0, P)[:, None, None]  # P N Q
        pose = tl.load(row, mask=(n < left) & (q < d), other=0)[None, :, :, :, None]
        total += tl.sum(pose * grad, axis=1, keep_dims=True)
        first_b += P
    out += first_i.to(tl.int64) * out_i
    _, at, _, inside, _ = _place(0, first_j, left, B, J, out_i, out_j, out_e, D, P, N, JT)
    q = first_q + tl.arange(0, Q)[None, None, None, :, None]
    tl.store(out + q.to(tl.int64) * out_d + at, total, mask=inside & (q < d))


class _Inputs(NamedTuple):
    """The lower capsules as the kernels read them, a run of them or all: samples last, and padded with zeros."""

    poses: Tensor  # I d padded
    most: Tensor  # I padded: the lengths of the poses
    weight: Tensor  # I J d D
    samples: int
    rule: str

    def run(self, i: slice) -> "_Inputs":
        """Only the lower capsules of one run."""
        return self._replace(poses=self.poses[i], most=self.most[i], weight=self.weight[i])

    def runs(self, numbers: int) -> Iterator[slice]:
        """Cuts the lower capsules into runs whose links fit the workspace with so many numbers each."""
        I, J, _, _ = self.weight.shape
        each = max(1, WORKSPACE // (4 * numbers * self.samples * J))
        for first in range(0, I, each):
            yield slice(first, min(first + each, I))

    def links(self, numbers: int) -> Tensor:
        """Memory for so many numbers for each link of the longest run."""
        longest = next(self.runs(numbers))
        J = self.weight.shape[1]
        shape = (numbers, longest.stop, self.samples, J)
        return torch.empty(shape, dtype=torch.float32, device=self.poses.device)


def _inputs(poses: Tensor, weight: Tensor, rule: str) -> _Inputs:
    """Turns the poses so that one load fetches an entry of several samples."""
    B, I, d = poses.shape
    # With a multiple of 16 no tile reaches past the end, and loads need no mask.
    turned = torch.zeros(I, d, triton.cdiv(B, 16) * 16, dtype=torch.float32, device=poses.device)
    turned[:, :, :B] = poses.permute(1, 2, 0)
    return _Inputs(turned, torch.linalg.vector_norm(turned, dim=1), weight, B, rule)


class _Tiles(NamedTuple):
    """How a kernel is cut: the axes of a tile, tiles over each axis, and `splits` runs of `each` lower capsules."""

    P: int
    N: int
    Q: int
    JT: int
    over_samples: int
    over_children: int
    over_entries: int
    over_parents: int
    most_splits: int
    splits: int
    each: int


def _tiles(inputs: _Inputs, tile: tuple[int, int], most_splits: int) -> _Tiles:
    """At most such a tile of samples and lower capsules, parents that fill its threads, programs for the whole GPU."""
    I, J, d, D = inputs.weight.shape
    P, N = (min(most, triton.next_power_of_2(there)) for most, there in zip(tile, (inputs.samples, I), strict=True))
    JT = min(TILE // triton.next_power_of_2(D), triton.next_power_of_2(J))
    Q = min(8, triton.next_power_of_2(d))
    over_samples, over_parents = triton.cdiv(inputs.samples, P), triton.cdiv(J, JT)
    most_splits = min(most_splits, triton.cdiv(PROGRAMS, over_samples * over_parents))
    each = triton.cdiv(I, most_splits)
    return _Tiles(
        P, N, Q, JT, over_samples, triton.cdiv(I, N), triton.cdiv(d, Q), over_parents,
        most_splits, triton.cdiv(I, each), each,
    )  # fmt: skip


def _agree(inputs: _Inputs, toward: Tensor, links: Tensor, grad_s: Tensor | None, slopes: Tensor | None) -> None:
    """Fills links (I B J), and with gs also slopes, for the vectors v or V that the votes agree with."""
    I, J, d, D = inputs.weight.shape
    tiles = _tiles(inputs, LINKS_TILE, PROGRAMS)
    _agree_kernel[(tiles.over_samples, tiles.over_parents, tiles.splits)](
        inputs.poses, inputs.most, inputs.weight, toward, toward if grad_s is None else grad_s,
        links, links if slopes is None else slopes,
        I, tiles.each, inputs.samples, J, inputs.poses.shape[2], *inputs.weight.stride(), links.stride(0),
        links.stride(1), SDA=inputs.rule == "sda", BACK=grad_s is not None, d=d, D=D, P=tiles.P, JT=tiles.JT,
        num_warps=WARPS,
    )  # fmt: skip


def _partial_sums(inputs: _Inputs) -> Tensor:
    """Zeros for `_gather` to add to: (splits, B, J, D)."""
    _, J, _, D = inputs.weight.shape
    return torch.zeros(
        _tiles(inputs, LINKS_TILE, SPLITS).most_splits,
        inputs.samples,
        J,
        D,
        dtype=torch.float32,
        device=inputs.poses.device,
    )


def _gather(inputs: _Inputs, factors: Tensor | None, toward: Tensor | None, partial: Tensor) -> None:
    """Adds sum_i factor_ij u_ij to partial sums, of u_ij - v_j where v is given; without factors they are all 1."""
    I, J, d, D = inputs.weight.shape
    tiles = _tiles(inputs, LINKS_TILE, SPLITS)
    strides = (0, 0) if factors is None else (factors.stride(0), factors.stride(1))
    _gather_kernel[(tiles.over_samples, tiles.over_parents, tiles.splits)](
        inputs.poses, inputs.most, inputs.weight, partial if toward is None else toward,
        partial if factors is None else factors, partial,
        I, tiles.each, inputs.samples, J, inputs.poses.shape[2], *inputs.weight.stride(), *strides,
        SDA=inputs.rule == "sda", EVEN=factors is None, CENTRED=toward is not None,
        d=d, D=D, P=tiles.P, JT=tiles.JT, num_warps=WARPS,
    )  # fmt: skip


def _row(J: int) -> tuple[int, int]:
    """The block that holds a row of parents, and the warps for it: 32 numbers a thread at most, up to J = 16384."""
    block = triton.next_power_of_2(J)
    return block, min(16, max(1, block // 256))


def _couple(inputs: _Inputs, links: Tensor, couplings: Tensor) -> None:
    """couplings (I B J, any strides but the last) from distances or agreements; may be the same memory."""
    I, J, _, _ = inputs.weight.shape
    block, warps = _row(J)
    _couple_kernel[(I, inputs.samples)](
        links, couplings, J, links.stride(0), links.stride(1), couplings.stride(0), couplings.stride(1),
        SCALE=scale(J), SDA=inputs.rule == "sda", ROW=block, num_warps=warps,
    )  # fmt: skip


def _uncouple(inputs: _Inputs, links: Tensor, slopes: Tensor, grad_c: Tensor | None) -> None:
    """Turns links into couplings and u . gs into slopes (both I B J), in place; grad_c is (I B J) too."""
    I, J, _, _ = inputs.weight.shape
    block, warps = _row(J)
    grad_strides = (0, 0, 0) if grad_c is None else grad_c.stride()
    _uncouple_kernel[(I, inputs.samples)](
        links, slopes, links if grad_c is None else grad_c, J, links.stride(0), links.stride(1), *grad_strides,
        SCALE=scale(J), SDA=inputs.rule == "sda", ADD=grad_c is not None, ROW=block, num_warps=warps,
    )  # fmt: skip


def _toward(sums: Tensor, rule: str) -> Tensor:
    """What the votes agree with in each iteration but the first (r-1, B, J, D): v of the last one, or V, all before."""
    v = squash(sums[:-1])
    return v if rule == "sda" else v.cumsum(dim=0)


def forward(
    poses: Tensor, weight: Tensor, bias: Tensor | None, rule: str, iterations: int, couplings: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Routes poses (B I d) with weight (I J d D): upper poses (B J D), couplings (B I J), sums s (r B J D)."""
    B, I, _ = poses.shape
    _, J, _, D = weight.shape
    inputs = _inputs(poses, weight, rule)
    sums = torch.empty(iterations, B, J, D, dtype=torch.float32, device=poses.device)
    c = torch.full((B, I, J), 1 / J, dtype=torch.float32, device=poses.device) if couplings else None
    links = inputs.links(1)[0]  # I B J of a run
    for k in range(iterations):
        partial = _partial_sums(inputs)
        if k == 0:
            _gather(inputs, None, None, partial)
            partial /= J
        else:
            toward = _toward(sums[: k + 1], rule)[-1]
            for i in inputs.runs(1):
                run = inputs.run(i)
                _agree(run, toward, links, None, None)
                factors = c[:, i].transpose(0, 1) if c is not None and k == iterations - 1 else links
                _couple(run, links, factors)
                _gather(run, factors, None, partial)
        sums[k] = partial.sum(dim=0) if bias is None else partial.sum(dim=0) + bias
    return squash(sums[-1]), c, sums


def _factors(inputs: _Inputs, toward: Tensor, grad_s: Tensor, grad_c: Tensor | None, memory: Tensor) -> None:
    """Fills memory (2 I B J) with the couplings and slopes of one iteration."""
    _agree(inputs, toward, memory[0], grad_s, memory[1])
    _uncouple(inputs, memory[0], memory[1], grad_c)


def _sums_gradient(
    inputs: _Inputs, grad_v: Tensor | None, grad_c: Tensor | None, sums: Tensor, toward: Tensor
) -> Tensor:
    """The gradient at s of every iteration (r B J D), from the last to the first."""
    grad_s, memory = torch.empty_like(sums), inputs.links(2)
    grad = torch.zeros_like(sums[0]) if grad_v is None else grad_v.float()
    pulled = torch.zeros_like(sums[0])  # RBA: the gradient at V so far, which is at every v before it
    for k in reversed(range(sums.shape[0])):
        grad_s[k] = squash_gradient(sums[k], grad)
        if k == 0:
            break
        partial = _partial_sums(inputs)
        for i in inputs.runs(2):
            run, by_link = inputs.run(i), None if grad_c is None else grad_c[i]
            _factors(run, toward[k - 1], grad_s[k], by_link, memory)
            _gather(run, memory[1], toward[k - 1] if inputs.rule == "sda" else None, partial)
        grad_c = None  # it was the gradient of the last iteration's couplings only
        if inputs.rule == "sda":
            grad = partial.sum(dim=0).neg_()
        else:
            grad = pulled = pulled + partial.sum(dim=0)
    return grad_s


def _poses_gradient(inputs: _Inputs, grad_s: Tensor, toward: Tensor, c: Tensor, a: Tensor, out: Tensor) -> None:
    """Fills out (I d padded) for a run of lower capsules, given couplings and slopes (r-1 I B J)."""
    I, J, d, D = inputs.weight.shape
    tiles = _tiles(inputs, POSES_TILE, 1)
    _poses_gradient_kernel[(tiles.over_children, tiles.over_samples, tiles.over_entries)](
        inputs.poses, inputs.most, inputs.weight, grad_s, toward, c, a, out,
        I, inputs.samples, J, inputs.poses.shape[2], *inputs.weight.stride(), c.stride(1), c.stride(2), c.stride(0),
        SDA=inputs.rule == "sda", R=grad_s.shape[0], d=d, D=D, Q=tiles.Q, P=tiles.P, N=tiles.N, JT=tiles.JT,
        num_warps=WARPS,
    )  # fmt: skip


def _weight_gradient(inputs: _Inputs, grad_s: Tensor, toward: Tensor, c: Tensor, a: Tensor, out: Tensor) -> None:
    """Fills out (I J d D, any strides) for a run of lower capsules, given couplings and slopes (r-1 I B J)."""
    I, J, d, D = inputs.weight.shape
    tiles = _tiles(inputs, WEIGHT_TILE, 1)
    _weight_gradient_kernel[(tiles.over_children, tiles.over_parents, tiles.over_entries)](
        inputs.poses, inputs.most, inputs.weight, grad_s, toward, c, a, out,
        I, inputs.samples, J, inputs.poses.shape[2], *inputs.weight.stride(), *out.stride(),
        c.stride(1), c.stride(2), c.stride(0),
        SDA=inputs.rule == "sda", R=grad_s.shape[0], d=d, D=D, Q=tiles.Q, P=tiles.P, N=tiles.N, JT=tiles.JT,
        num_warps=WARPS,
    )  # fmt: skip


def _inputs_gradient(
    inputs: _Inputs,
    grad_s: Tensor,
    grad_c: Tensor | None,
    toward: Tensor,
    grad_poses: Tensor | None,
    grad_weight: Tensor | None,
) -> None:
    """Fills those of grad_poses (I d padded) and grad_weight (I J d D) that are wanted."""
    later = range(1, grad_s.shape[0])  # the iterations but the first, whose couplings are all 1/J
    numbers = 2 * max(1, len(later))
    memory = inputs.links(numbers)
    c, a = memory[0::2], memory[1::2]  # r-1 I B J
    for i in inputs.runs(numbers):
        run = inputs.run(i)
        for k in later:
            by_link = grad_c[i] if grad_c is not None and k == later[-1] else None
            _factors(run, toward[k - 1], grad_s[k], by_link, memory[2 * k - 2 : 2 * k])
        if grad_poses is not None:
            _poses_gradient(run, grad_s, toward, c, a, grad_poses[i])
        if grad_weight is not None:
            _weight_gradient(run, grad_s, toward, c, a, grad_weight[i])


def backward(
    grad_v: Tensor | None,
    grad_c: Tensor | None,
    poses: Tensor,
    weight: Tensor,
    sums: Tensor,
    rule: str,
    iterations: int,
    want_poses: bool,
    want_weight: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor]:
    """The gradients at poses (B I d), weight (I J d D, strides as weight's) and bias (J D), in float32."""
    inputs, toward = _inputs(poses, weight, rule), _toward(sums[:iterations], rule)
    by_link = None if grad_c is None else grad_c.float().transpose(0, 1)  # I B J
    grad_s = _sums_gradient(inputs, grad_v, by_link, sums[:iterations], toward)
    grad_poses = torch.empty_like(inputs.poses) if want_poses else None
    grad_weight = torch.empty_like(weight, dtype=torch.float32) if want_weight else None
    if want_poses or want_weight:
        _inputs_gradient(inputs, grad_s, by_link, toward, grad_poses, grad_weight)
    if grad_poses is not None:
        grad_poses = grad_poses[:, :, : poses.shape[0]].permute(2, 0, 1)
    return grad_poses, grad_weight, grad_s.sum(dim=(0, 1))
