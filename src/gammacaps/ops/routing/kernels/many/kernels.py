"""The kernels of `many`; what each is for, and how numbers of the links lie in memory, its docstring tells."""

from typing import no_type_check

import triton
import triton.language as tl

from gammacaps.ops.kernels.squash import TINY
from gammacaps.ops.routing.kernels.votes import NEAR

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
        ratio = tl.where(size > longest, longest / tl.maximum(size, TINY), 1.0)
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
    usual = tl.maximum(tl.sum(tl.where(inside, number, 0.0), axis=0) / J, TINY)
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
        mean = tl.where(usual > TINY, tl.sum(slope * (number / usual), axis=0) / J, 0.0)
        slope = (slope - mean) * (SCALE / usual)
        slope = tl.where(number > NEAR, slope / tl.maximum(number, NEAR), 0.0)
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
        longest = tl.maximum(longest, TINY)
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
        longest = tl.maximum(tl.load(most + i * padded + b, mask=n < left, other=0), TINY)  # P N 1
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
