"""Routing where all upper capsules fit in a tile, as Triton kernels: votes are computed anew wherever they are needed.

Each iteration of routing needs a sum over all lower capsules, so it is a kernel of its own: its programs each take some
samples and some lower capsules, keep the sums in registers and leave them as partial sums, which a small kernel adds up
and squashes. Votes never reach memory. What routing found for each pair of capsules (couplings and distances, one
number each) does, where a gradient will be asked for: reading it again is faster than another look at the votes.

Inside, tensors are arranged so that neighbouring threads read neighbouring memory, and filled up with zeros, so that no
load needs a mask: B to Bp samples, J to Jp upper capsules, D to Dh groups of 4 entries.

    poses   I d Bp            weight    I d Dh Jp 4
    lengths I Bp              sums, pulls, gradients at the parents    Bp Dh Jp 4
    links   I Bp Jp           (a number for each pair of capsules)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from gammacaps.ops.kernels.votes import TINY, couple, distance_gradient, dot, shorten, softmax_gradient, times
from gammacaps.ops.reference import scale

WARPS = 4


class Share(NamedTuple):
    """Registers for each thread of a program, and how many programs of 4 warps a multiprocessor then has room for."""

    registers: int
    side_by_side: int


# What was fastest on an H200; with fewer registers the gradient's kernel would have to keep some of its own in memory.
FORWARD, GRADIENT, SPREAD, LEARN = Share(168, 3), Share(255, 2), Share(168, 3), Share(255, 2)
# The gradient's last kernel keeps the weights of a lower capsule in registers, so many to a thread.
WEIGHTS_A_THREAD = 128


def fits(J: int, d: int, D: int) -> bool:
    """Whether these kernels can route to J upper capsules of size D from lower ones of size d."""
    Jp, dp, Dp = (triton.next_power_of_2(n) for n in (J, d, max(4, D)))
    return dp * Dp * max(1, Jp // 32) <= WEIGHTS_A_THREAD and Jp <= 128


@triton.jit
@no_type_check
def vectors_of(Jp: tl.constexpr, Dh: tl.constexpr):
    """Where the entries of a tile of vectors [J, 1, 1, Dh, 4] lie."""
    parent = tl.arange(0, Jp)[:, None, None, None, None]
    group = tl.arange(0, Dh)[None, None, None, :, None]
    return group * (Jp * 4) + parent * 4 + tl.arange(0, 4)[None, None, None, None, :]


@triton.jit
@no_type_check
def at_senders(b):
    """Samples or lower capsules [G, R], shaped to meet vectors: [1, G, R, 1, 1]."""
    return b[None, :, :, None, None]


@triton.jit
@no_type_check
def links_of(i, b, Bp, one, Jp: tl.constexpr):
    """Where the links of senders [G, R] lie, [J, G, R].

    `one` is 1, which Triton must not know: it would give a thread four neighbours, and then have to shuffle them to the
    threads that hold their votes.
    """
    return (i * Bp + b)[None, :, :] * Jp + tl.arange(0, Jp)[:, None, None] * one


@triton.jit
@no_type_check
def votes_of_samples(
    poses, lengths, weight, i, b, Bp,
    SDA: tl.constexpr, d: tl.constexpr, G: tl.constexpr, R: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr,
):  # fmt: skip
    """The votes of one lower capsule in samples b [G, R], where i [G, 1] names that capsule: [J, G, R, Dh, 4]."""
    rows = weight + at_senders(i) * (d * Dh * Jp * 4) + vectors_of(Jp, Dh)  # J G 1 Dh 4: each warp loads for itself
    raw = tl.zeros((Jp, G, R, Dh, 4), tl.float32)
    for row in tl.static_range(d):
        raw += tl.load(rows + row * (Dh * Jp * 4)) * at_senders(tl.load(poses + (i * d + row) * Bp + b))
    return shorten(raw, tl.load(lengths + i * Bp + b)[None, :, :], SDA)


@triton.jit(do_not_specialize=["one"])
@no_type_check
def gather(
    poses, lengths, weight, pull, couplings, distances, partial, I, Bp, one, scale, children,
    SDA: tl.constexpr, FIRST: tl.constexpr, KEEP: tl.constexpr, J: tl.constexpr, d: tl.constexpr,
    G: tl.constexpr, R: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr,
):  # fmt: skip
    """One iteration's sums of coupled votes over some lower capsules for G x R samples: partial (T, Bp, Dh, Jp, 4)."""
    b = tl.program_id(0) * (G * R) + R * tl.arange(0, G)[:, None] + tl.arange(0, R)[None, :]
    place = at_senders(b) * (Dh * Jp * 4) + vectors_of(Jp, Dh)
    found = tl.zeros((Jp, G, R, Dh, 4), tl.float32)
    if not FIRST:
        v = tl.load(pull + place)
    start = tl.program_id(1) * children
    for n in range(tl.minimum(children, I - start)):
        i = start + n + tl.zeros((G, 1), tl.int32)
        u, _ = votes_of_samples(poses, lengths, weight, i, b, Bp, SDA, d, G, R, Jp, Dh)
        if FIRST:
            found += u
        else:
            c, distance = couple(u, v, J, scale, SDA)
            found += times(u, c)
            if KEEP:
                links = links_of(i, b, Bp, one, Jp)
                tl.store(couplings + links, c)
                if SDA:
                    tl.store(distances + links, distance)
    if FIRST:
        found *= 1.0 / J
    tl.store(partial + tl.program_id(1) * Bp * (Dh * Jp * 4) + place, found)


@triton.jit(do_not_specialize=["one"])
@no_type_check
def gather_gradient(
    poses, lengths, weight, pull, grads, couplings, distances, slopes, grad_c, partial, I, Bp, B, one, scale, children,
    SDA: tl.constexpr, ALSO_C: tl.constexpr, J: tl.constexpr, d: tl.constexpr,
    G: tl.constexpr, R: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr,
):  # fmt: skip
    """The gradient at what pulled in one iteration, summed over some lower capsules -> partial (T, Bp, Dh, Jp, 4).

    The slopes, which the last kernel needs, are the gradients at the distances, divided by the distance (SDA), or at
    the logits (RBA).
    """
    b = tl.program_id(0) * (G * R) + R * tl.arange(0, G)[:, None] + tl.arange(0, R)[None, :]
    place = at_senders(b) * (Dh * Jp * 4) + vectors_of(Jp, Dh)
    v, gs = tl.load(pull + place), tl.load(grads + place)
    found = tl.zeros((Jp, G, R, Dh, 4), tl.float32)
    start = tl.program_id(1) * children
    for n in range(tl.minimum(children, I - start)):
        i = start + n + tl.zeros((G, 1), tl.int32)
        links = links_of(i, b, Bp, one, Jp)
        c = tl.load(couplings + links)
        u, _ = votes_of_samples(poses, lengths, weight, i, b, Bp, SDA, d, G, R, Jp, Dh)
        grad = dot(u, gs)
        if ALSO_C:
            parent = tl.arange(0, Jp)[:, None, None]
            at = (b.to(tl.int64) * I + i)[None, :, :] * J + parent
            grad += tl.load(grad_c + at, mask=(parent < J) & (b < B)[None, :, :], other=0.0).to(tl.float32)
        slope = softmax_gradient(c, grad)
        if SDA:
            slope = distance_gradient(tl.load(distances + links), slope, J, scale)
            found += times(v - u, slope)
        else:
            found += times(u, slope)
        tl.store(slopes + links, slope)
    tl.store(partial + tl.program_id(1) * Bp * (Dh * Jp * 4) + place, found)


@triton.jit(do_not_specialize=["one"])
@no_type_check
def spread_gradient(
    poses, lengths, weight, pulls, grads, couplings, slopes, grad_poses, grad_weight, I, Bp, B, one, samples,
    SDA: tl.constexpr, ITERATIONS: tl.constexpr, POSES: tl.constexpr, WEIGHT: tl.constexpr,
    J: tl.constexpr, d: tl.constexpr, D: tl.constexpr,
    G: tl.constexpr, Jp: tl.constexpr, dp: tl.constexpr, Dh: tl.constexpr,
):  # fmt: skip
    """From the gradients at all sums s^k to those of the poses, and of the weights, summed over some samples.

    Nothing is summed over lower capsules here: a program keeps the weights of G of them, and walks over samples.
    """
    child = tl.program_id(0) * G + tl.arange(0, G)[:, None]  # G 1
    i = tl.minimum(child, I - 1)
    row = tl.arange(0, dp)[None, None, :, None, None]  # the weights' axis of rows takes the place of R
    place = vectors_of(Jp, Dh)
    w = tl.load(weight + (at_senders(i) * d + row) * (Dh * Jp * 4) + place, mask=row < d, other=0.0)  # J G d Dh 4
    learned = tl.zeros_like(w)
    start = tl.program_id(1) * samples
    for n in range(tl.minimum(samples, B - start)):
        b = start + n + tl.zeros((G, 1), tl.int32)
        # Row by row, so that each thread loads what it needs of the poses: a thread has all rows.
        p = tl.zeros((1, G, dp, 1, 1), tl.float32)
        for r in tl.static_range(d):
            p = tl.where(row == r, at_senders(tl.load(poses + (i * d + r) * Bp + b)), p)
        most = tl.load(lengths + i * Bp + b)[None, :, :]  # 1 G 1
        u, ratio = shorten(tl.sum(w * p, axis=2, keep_dims=True), most, SDA)  # J G 1 Dh 4, J G 1
        parents = at_senders(b) * (Dh * Jp * 4) + place
        grad_u = tl.load(grads + parents) * (1.0 / J)
        links = links_of(i, b, Bp, one, Jp)
        for k in tl.static_range(1, ITERATIONS):
            layer = (k - 1) * Bp * (Dh * Jp * 4)
            v, gs = tl.load(pulls + layer + parents), tl.load(grads + layer + Bp * (Dh * Jp * 4) + parents)
            before = (k - 1) * Bp.to(tl.int64) * I * Jp
            c, slope = tl.load(couplings + before + links), tl.load(slopes + before + links)
            grad_u += times(gs, c)
            if SDA:
                grad_u += times(u - v, slope)
            else:
                grad_u += times(v, slope)
        if SDA:
            # Where a vote was shortened, its length is the capsule's: what points along it moves the capsule.
            along = tl.where(ratio < 1, dot(grad_u, u) / tl.maximum(most * most, TINY * TINY), 0.0)  # J G 1
            grad_u = times(grad_u - times(u, along), ratio)
        if POSES:
            found = dot(w, grad_u)  # J G d
            if SDA:
                found += tl.sum(tl.sum(p, axis=4), axis=3) * along
            entry = tl.arange(0, dp)[None, :]
            tl.store(grad_poses + (b * I + child) * d + entry, tl.sum(found, axis=0), mask=(child < I) & (entry < d))
        if WEIGHT:
            learned += p * grad_u
    if WEIGHT:
        parent = tl.arange(0, Jp)[:, None, None, None, None]
        entry = (4 * tl.arange(0, Dh)[:, None] + tl.arange(0, 4)[None, :])[None, None, None, :, :]
        own = at_senders(tl.program_id(1) * I + child).to(tl.int64) * (d * J * D)
        there = (at_senders(child) < I) & (parent < J) & (row < d) & (entry < D)
        tl.store(grad_weight + own + row * (J * D) + parent * D + entry, learned, mask=there)


@triton.jit
@no_type_check
def parents_of(j, J: tl.constexpr, D: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr):
    """Of upper capsules j [Jt, 1]: where their entries lie arranged, where in (J, D), and which are in the latter."""
    entry = tl.arange(0, 4 * Dh)[None, :]
    return (entry // 4) * (Jp * 4) + j * 4 + entry % 4, j * D + entry, (j < J) & (entry < D)


@triton.jit
@no_type_check
def total(partial, place, b, T, Bp, ROWS: tl.constexpr, Jt: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr):
    """The sum of sample b's partial sums, [Jt, D]."""
    found = tl.zeros((ROWS, Jt, 4 * Dh), tl.float32)
    part = tl.arange(0, ROWS)[:, None, None]
    for t in range(0, T, ROWS):
        at = ((t + part).to(tl.int64) * Bp + b) * (Dh * Jp * 4) + place[None]
        found += tl.load(partial + at, mask=t + part < T, other=0.0)
    return tl.sum(found, axis=0)


@triton.jit
@no_type_check
def add_up(
    partial, bias, sums, pull, before, poses, T, Bp,
    SDA: tl.constexpr, BIAS: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr,
    J: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, Jt: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr,
):  # fmt: skip
    """s = sum of the partial sums, with the bias; v = squash(s), or what pulls in the next iteration."""
    b = tl.program_id(0)
    j = tl.program_id(1) * Jt + tl.arange(0, Jt)[:, None]
    place, plain, inside = parents_of(j, J, D, Jp, Dh)
    s = total(partial, place, b, T, Bp, ROWS, Jt, Jp, Dh)
    if BIAS:
        s += tl.load(bias + plain, mask=inside, other=0.0).to(tl.float32)
    square = tl.sum(s * s, axis=1, keep_dims=True)
    v = s * (tl.sqrt(square) / (1 + square))
    at = b * (Dh * Jp * 4) + place
    tl.store(sums + at, s)
    if LAST:
        tl.store(poses + b * (J * D) + plain, v, mask=inside)
    else:
        if not SDA and not FIRST:  # RBA is pulled by the poses of all iterations so far together
            v += tl.load(before + at)
        tl.store(pull + at, v)


@triton.jit
@no_type_check
def add_up_gradient(
    partial, incoming, sums, so_far, grads, T, Bp,
    LAST: tl.constexpr, CARRY: tl.constexpr,
    J: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, Jt: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr,
):  # fmt: skip
    """The gradient at v, summed over the partial sums or come in (B, J, D), taken through the squash to s."""
    b = tl.program_id(0)
    j = tl.program_id(1) * Jt + tl.arange(0, Jt)[:, None]
    place, plain, inside = parents_of(j, J, D, Jp, Dh)
    at = b * (Dh * Jp * 4) + place
    if LAST:
        grad = tl.load(incoming + b * (J * D) + plain, mask=inside, other=0.0).to(tl.float32)
    else:
        grad = total(partial, place, b, T, Bp, ROWS, Jt, Jp, Dh)
        if CARRY:  # RBA: v pulls in all later iterations, not only in the next
            grad += tl.load(so_far + at)
            tl.store(so_far + at, grad)
    s = tl.load(sums + at)
    square = tl.sum(s * s, axis=1, keep_dims=True)
    norm = tl.sqrt(square)
    along = tl.sum(s * grad, axis=1, keep_dims=True) / tl.maximum(norm, TINY)
    below = 1 + square
    tl.store(grads + at, grad * (norm / below) + s * (along * (1 - square) / (below * below)))


@triton.jit
@no_type_check
def arrange_weight_kernel(
    weight, out, si: tl.constexpr, sj: tl.constexpr, sd: tl.constexpr, se: tl.constexpr,
    J: tl.constexpr, d: tl.constexpr, D: tl.constexpr, Jp: tl.constexpr, Dh: tl.constexpr,
):  # fmt: skip
    """One row of one lower capsule's weights: (I, J, d, D) -> I d Dh Jp 4."""
    i, row = tl.program_id(0) // d, tl.program_id(0) % d
    j, entry = tl.arange(0, Jp)[:, None], tl.arange(0, 4 * Dh)[None, :]
    w = tl.load(weight + i * si + row * sd + j * sj + entry * se, mask=(j < J) & (entry < D), other=0.0)
    place = (entry // 4) * (Jp * 4) + j * 4 + entry % 4
    tl.store(out + tl.program_id(0).to(tl.int64) * (Dh * Jp * 4) + place, w.to(tl.float32))


@triton.jit
@no_type_check
def arrange_poses_kernel(
    poses, out, lengths, B, I, Bp, d: tl.constexpr, dp: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Poses (B, I, d) -> I d Bp and their lengths I Bp."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[None, :, None]
    b = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[:, None, None]
    entry = tl.arange(0, dp)[None, None, :]
    p = tl.load(poses + (b * I + i) * d + entry, mask=(b < B) & (i < I) & (entry < d), other=0.0).to(tl.float32)
    tl.store(out + (i * d + entry) * Bp + b, p, mask=(b < Bp) & (i < I) & (entry < d))
    size = tl.sqrt(tl.sum(p * p, axis=2))  # COLUMNS ROWS
    i, b = tl.reshape(i, (1, ROWS)), tl.reshape(b, (COLUMNS, 1))
    tl.store(lengths + i * Bp + b, size, mask=(b < Bp) & (i < I))


class Kept(NamedTuple):
    """What the gradient of routing needs again, arranged as at the top of this file."""

    poses: Tensor  # I d Bp
    lengths: Tensor  # I Bp
    weight: Tensor  # I d Dh Jp 4
    sums: Tensor  # iterations Bp Dh Jp 4: s with the bias
    pulls: Tensor  # iterations-1 Bp Dh Jp 4: what pulled the votes in each iteration but the first
    couplings: Tensor  # iterations-1 I Bp Jp
    distances: Tensor  # iterations-1 I Bp Jp; for RBA empty


class Layer:
    """A layer's shapes, how it is cut into tiles, and how its kernels are launched."""

    def __init__(self, B: int, shape: Sequence[int], rule: str, device: torch.device) -> None:
        """For B samples and weights of a shape (I, J, d, D)."""
        I, J, d, D = shape
        self.B, self.I, self.J, self.d, self.D, self.rule, self.device = B, I, J, d, D, rule, device
        self.Jp, self.dp, self.Dh = (triton.next_power_of_2(n) for n in (J, d, -(-D // 4)))
        # Lanes that upper capsules leave free go to samples. A thread has 32 entries of votes: with sums, parents and
        # weights that is about what it has registers for.
        self.G = WARPS * max(1, 32 // self.Jp)
        most = max(1, 32 // (self.Dh * 4 * max(1, self.Jp // 32)))
        self.R = min(most, triton.next_power_of_2(triton.cdiv(B, self.G)))
        self.groups = triton.cdiv(B, self.G * self.R)
        self.Bp = self.groups * self.G * self.R
        self.tile: dict[str, Any] = {"J": J, "Jp": self.Jp, "Dh": self.Dh}

    def new(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=self.device)

    def vectors(self, *leading: int) -> Tensor:
        """Memory for vectors of all parents; zeros where samples that fill up a tile would keep whatever was there."""
        make = torch.zeros if self.Bp > self.B else torch.empty
        return make((*leading, self.Bp, self.Dh, self.Jp, 4), dtype=torch.float32, device=self.device)

    def links(self, count: int) -> Tensor:
        """Memory for a number for each pair of capsules, `count` times."""
        return self.new(count, self.I, self.Bp, self.Jp)

    def arrange_weight(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """Weights (I, J, d, D) -> I d Dh Jp 4."""
        out = self.new(self.I, self.d, self.Dh, self.Jp, 4) if out is None else out
        si, sj, sd, se = weight.stride()
        arrange_weight_kernel[self.I * self.d,](
            weight, out, si=si, sj=sj, sd=sd, se=se, d=self.d, D=self.D, num_warps=2, **self.tile
        )
        return out

    def arrange_poses(self, poses: Tensor) -> tuple[Tensor, Tensor]:
        """Poses (B, I, d) -> I d Bp, and their lengths I Bp."""
        out, lengths = self.new(self.I, self.d, self.Bp), self.new(self.I, self.Bp)
        rows, columns = 8, 16
        arrange_poses_kernel[triton.cdiv(self.I, rows), triton.cdiv(self.Bp, columns)](
            poses, out, lengths, self.B, self.I, self.Bp, d=self.d, dp=self.dp, ROWS=rows, COLUMNS=columns
        )
        return out, lengths

    def children(self, share: Share) -> int:
        """How many lower capsules each program takes, so that all programs run at once."""
        return triton.cdiv(self.I, max(1, multiprocessors(self.device) * share.side_by_side // self.groups))

    def parts(self, share: Share) -> int:
        """How many programs share the lower capsules, each with a partial sum."""
        return triton.cdiv(self.I, self.children(share))

    def gather(self, kernel: Any, share: Share, *arguments: Any, **constants: Any) -> None:
        """A kernel that sums over lower capsules for G x R samples a program."""
        kernel[self.groups, self.parts(share)](
            *arguments, 1, scale(self.J), self.children(share), SDA=self.rule == "sda", d=self.d, G=self.G, R=self.R,
            num_warps=WARPS, maxnreg=share.registers, **self.tile, **constants,
        )  # fmt: skip

    def add_up(self, kernel: Any, parts: int, *tensors: Tensor | None, **constants: Any) -> None:
        """A kernel in which each program takes some upper capsules of one sample."""
        Jt = min(self.Jp, max(1, 64 // self.Dh))
        kernel[self.B, self.Jp // Jt](
            *tensors, parts, self.Bp, D=self.D, ROWS=8, Jt=Jt, num_warps=4, **self.tile, **constants
        )

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int, keep: bool
    ) -> tuple[Tensor, Kept]:
        """Routes poses (B, I, d) by arranged weights to poses (B, J, D); `keep` for a gradient, or the couplings."""
        p, lengths = self.arrange_poses(poses)
        parts = self.parts(FORWARD)
        v, partial = self.new(self.B, self.J, self.D), self.vectors(parts)
        sums, pulls = self.vectors(iterations), self.vectors(iterations - 1)
        couplings = self.links(iterations - 1 if keep else 0)
        distances = self.links(iterations - 1 if keep and self.rule == "sda" else 0)
        for k in range(iterations):
            kept = [links[k - 1] if k and len(links) else None for links in (couplings, distances)]
            self.gather(
                gather, FORWARD, p, lengths, weight, pulls[k - 1] if k else None, *kept, partial, self.I, self.Bp,
                FIRST=k == 0, KEEP=keep,
            )  # fmt: skip
            last = k == iterations - 1
            self.add_up(
                add_up, parts, partial, bias, sums[k], None if last else pulls[k], pulls[k - 1] if k else None, v,
                SDA=self.rule == "sda", BIAS=bias is not None, FIRST=k == 0, LAST=last,
            )  # fmt: skip
        return v, Kept(p, lengths, weight, sums, pulls, couplings, distances)

    def backward(
        self,
        kept: Kept,
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        want_poses: bool,
        want_weight: bool,
        slopes: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """Gradients of poses (B, I, d) and weight (I, J, d, D), and of all sums s, arranged.

        `slopes` is memory for them; it may be that of the kept distances, which are then lost.
        """
        iterations, sda = len(kept.sums), self.rule == "sda"
        parts = self.parts(GRADIENT)
        partial, grads = self.vectors(parts), self.vectors(iterations)
        slopes = torch.empty_like(kept.couplings) if slopes is None else slopes
        so_far = None if sda else torch.zeros_like(kept.sums[0])
        if grad_v is None:
            grads[-1].zero_()
        else:
            self.add_up(
                add_up_gradient, 0, None, grad_v.contiguous(), kept.sums[-1], None, grads[-1], LAST=True, CARRY=False
            )
        for k in range(iterations - 1, 0, -1):
            last = k == iterations - 1
            self.gather(
                gather_gradient, GRADIENT, kept.poses, kept.lengths, kept.weight, kept.pulls[k - 1], grads[k],
                kept.couplings[k - 1], kept.distances[k - 1] if sda else None, slopes[k - 1], grad_c if last else None,
                partial, self.I, self.Bp, self.B, ALSO_C=last and grad_c is not None,
            )  # fmt: skip
            self.add_up(
                add_up_gradient, parts, partial, None, kept.sums[k - 1], so_far, grads[k - 1], LAST=False, CARRY=not sda
            )
        return *self.spread(kept, grads, slopes, want_poses, want_weight), grads

    def spread(
        self, kept: Kept, grads: Tensor, slopes: Tensor, want_poses: bool, want_weight: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """The last kernel of the gradient."""
        tiles = triton.cdiv(self.I, self.G)
        share = LEARN if want_weight else SPREAD
        samples = share_samples(self.B, tiles, multiprocessors(self.device) * share.side_by_side)
        splits = triton.cdiv(self.B, samples)
        found = self.new(self.B, self.I, self.d) if want_poses else None
        learned = self.new(splits, self.I, self.d, self.J, self.D) if want_weight else None
        if want_poses or want_weight:
            spread_gradient[tiles, splits](
                kept.poses, kept.lengths, kept.weight, kept.pulls, grads, kept.couplings, slopes, found, learned,
                self.I, self.Bp, self.B, 1, samples, SDA=self.rule == "sda", ITERATIONS=len(grads), POSES=want_poses,
                WEIGHT=want_weight, d=self.d, D=self.D, G=self.G, dp=self.dp, num_warps=WARPS,
                maxnreg=share.registers, **self.tile,
            )  # fmt: skip
        if learned is None:
            return found, None
        return found, (learned[0] if splits == 1 else learned.sum(0)).transpose(1, 2)

    def plain_couplings(self, kept: Kept) -> Tensor:
        """The last iteration's couplings as (B, I, J)."""
        if len(kept.couplings) == 0:
            return torch.full((self.B, self.I, self.J), 1 / self.J, device=self.device)
        return kept.couplings[-1, :, : self.B, : self.J].transpose(0, 1).contiguous()

    def plain_vectors(self, vectors: Tensor) -> Tensor:
        """Vectors Dh Jp 4 as (J, D)."""
        return vectors.transpose(0, 1).flatten(1)[: self.J, : self.D]


def multiprocessors(device: torch.device) -> int:
    """How many programs or so run at once; some small number under the interpreter."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def share_samples(B: int, tiles: int, at_once: int) -> int:
    """How many samples each program walks over, so that the last ones to start do not leave the others waiting."""

    def time(samples: int) -> float:
        rounds = triton.cdiv(tiles * triton.cdiv(B, samples), at_once)
        return rounds * (samples + 2)  # each program first loads its weights, about the time of two samples

    return min({triton.cdiv(B, n) for n in range(1, min(B, 16) + 1)}, key=time)
