"""The kernels of `few`; the shapes in capitals and the arrangements in memory are those of its docstring."""

from typing import no_type_check

import triton
import triton.language as tl

from gammacaps.ops.kernels.squash import squash_factor, squash_gradient_factors
from gammacaps.ops.routing.kernels.votes import (
    couple,
    distance_gradient,
    dot,
    shorten,
    shorten_gradient,
    softmax_gradient,
    times,
)


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
    summed = tl.zeros((Jp, G, R, Dh, 4), tl.float32)
    if not FIRST:
        v = tl.load(pull + place)
    start = tl.program_id(1) * children
    for n in range(tl.minimum(children, I - start)):
        i = start + n + tl.zeros((G, 1), tl.int32)
        u, _ = votes_of_samples(poses, lengths, weight, i, b, Bp, SDA, d, G, R, Jp, Dh)
        if FIRST:
            summed += u
        else:
            c, distance = couple(u, v, J, scale, SDA)
            summed += times(u, c)
            if KEEP:
                links = links_of(i, b, Bp, one, Jp)
                tl.store(couplings + links, c)
                if SDA:
                    tl.store(distances + links, distance)
    if FIRST:
        summed *= 1.0 / J
    tl.store(partial + tl.program_id(1) * Bp * (Dh * Jp * 4) + place, summed)


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
    summed = tl.zeros((Jp, G, R, Dh, 4), tl.float32)
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
            summed += times(v - u, slope)
        else:
            summed += times(u, slope)
        tl.store(slopes + links, slope)
    tl.store(partial + tl.program_id(1) * Bp * (Dh * Jp * 4) + place, summed)


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
            grad_u, along = shorten_gradient(grad_u, u, ratio, most * most)
        if POSES:
            at_pose = dot(w, grad_u)  # J G d
            if SDA:
                at_pose += tl.sum(tl.sum(p, axis=4), axis=3) * along
            entry = tl.arange(0, dp)[None, :]
            tl.store(grad_poses + (b * I + child) * d + entry, tl.sum(at_pose, axis=0), mask=(child < I) & (entry < d))
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
    summed = tl.zeros((ROWS, Jt, 4 * Dh), tl.float32)
    part = tl.arange(0, ROWS)[:, None, None]
    for t in range(0, T, ROWS):
        at = ((t + part).to(tl.int64) * Bp + b) * (Dh * Jp * 4) + place[None]
        summed += tl.load(partial + at, mask=t + part < T, other=0.0)
    return tl.sum(summed, axis=0)


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
    v = s * squash_factor(tl.sum(s * s, axis=1, keep_dims=True))
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
    square, product = tl.sum(s * s, axis=1, keep_dims=True), tl.sum(s * grad, axis=1, keep_dims=True)
    by_grad, by_s = squash_gradient_factors(square, product)
    tl.store(grads + at, grad * by_grad + s * by_s)


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
