"""Kernels that go over the children of a position, G at a time; `votes.py` says what a thread has.

A program has one position and T samples, with all their J parents.
"""

from typing import Any, no_type_check

import triton
import triton.language as tl

from gammacaps.ops.em.kernels.votes import (
    LOG_2_PI,
    SMALLEST,
    TINY,
    axes,
    child_at,
    divided,
    load_rows,
    load_rows_if,
    matrix_at,
    numbers,
    offsets_of,
    over_children,
    over_entries,
    over_parents,
    reciprocal,
    store_rows,
    votes_of,
    zero_rows,
)

# Sizes are given at run time, and so is what an iteration has: what is compiled serves all layers and iterations.
SIZES = (
    "B", "L", "BY_L", "K", "J", "n", "ROWS", "BY_ROWS", "LX", "BY_LX", "WIDTH", "TYPES", "BY_TYPES", "COLUMNS",
    "BY_COLUMNS", "STRIDE",
)  # fmt: skip
# What is loaded number by number may begin anywhere.
NUMBERS = (
    "activations", "beta_v", "beta_a", "shares", "couplings", "total", "active", "logits", "at_logits", "grad_active",
    "at_couplings", "at_first", "at_beta_v", "at_beta_a",
)  # fmt: skip


def kernel(*counts: str) -> Any:
    """`triton.jit`, compiled once for all sizes, and for all values of the other `counts`."""
    return triton.jit(do_not_specialize=SIZES + counts, do_not_specialize_on_alignment=NUMBERS)


@triton.jit
@no_type_check
def weights_of(activations, couplings, begins, c, at, inside):
    """Coupling times activation, and the coupling; in the first iteration that is an equal share of a child's."""
    coupling = tl.load(couplings + tl.where(begins, c, at))
    return tl.where(inside, tl.load(activations + c) * coupling, 0.0), coupling


@kernel("begins", "explained")
@no_type_check
def fit_kernel(
    poses, activations, weight, places, beta_v, beta_a, couplings, mean, variance, total, active, logits,
    begins, explained, steepness, factor, B,
    L, BY_L, K, J, n, ROWS, BY_ROWS, LX, BY_LX, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS, STRIDE,
    X: tl.constexpr, Jp: tl.constexpr, T: tl.constexpr, G: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """The M-step: mean and variance (B L J 16), sum of the weights and activation (B L J).

    Then the logits of the E-step (B L K J) of the first `explained` children, all or none, from the same fit.
    `couplings` are (B L K J), or, where routing `begins`, equal shares (n).
    """
    l = tl.program_id(0)
    row, column = (l // LX) * STRIDE, (l % LX) * STRIDE
    j, t, g = axes(X, Jp, T)
    b = tl.program_id(1) * T + t
    there = (b < B) & (j < J)
    b, j = tl.minimum(b, B - 1).to(tl.int64), tl.minimum(j, J - 1)
    poses += b * (n * 16)
    activations += b * n
    weight += j * 16
    parent = (b * L + l) * J + j
    link = (b * L + l) * (K * J) + j
    begins = begins != 0
    couplings += tl.where(begins, 0, link)

    # Mean and squares in one go over the votes, by Welford's method: each vote moves the mean of those before, which
    # is u times -1.
    S = tl.zeros([X], tl.float32)
    u_0, u_1, u_2, u_3 = zero_rows(X)
    s_0, s_1, s_2, s_3 = zero_rows(X)
    for first in range(0, K, G):
        inside = there & (first + g < K)
        k = tl.minimum(first + g, K - 1)
        c = child_at(k, row, column, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS)
        W = load_rows(weight + matrix_at(k, ROWS, BY_ROWS, SHARED) * (J * 16))
        v = votes_of(load_rows(poses + c * 16), W, places, k)
        d_0, d_1, d_2, d_3 = v[0] + u_0, v[1] + u_1, v[2] + u_2, v[3] + u_3
        w, _ = weights_of(activations, couplings, begins, c, k * J, inside)
        before = S
        S += w
        share = w * reciprocal(tl.maximum(S, SMALLEST))
        rest = (share * before)[:, None]  # not w (1 - share), which is nothing but rounding where share is about 1
        share = share[:, None]
        u_0 -= share * d_0
        u_1 -= share * d_1
        u_2 -= share * d_2
        u_3 -= share * d_3
        s_0 += d_0 * d_0 * rest
        s_1 += d_1 * d_1 * rest
        s_2 += d_2 * d_2 * rest
        s_3 += d_3 * d_3 * rest

    # The parts that G children have become one. Normal weights are divided by a little more than their sum, and fall
    # short of 1, which moves the mean toward zero, away from the middle of the votes.
    whole = over_children(S, G)
    inverse = 1.0 / (whole + TINY)
    m_0, s_0 = merged(S, -u_0, s_0, whole, inverse, G)
    m_1, s_1 = merged(S, -u_1, s_1, whole, inverse, G)
    m_2, s_2 = merged(S, -u_2, s_2, whole, inverse, G)
    m_3, s_3 = merged(S, -u_3, s_3, whole, inverse, G)

    log_sum = over_entries((tl.log(s_0), tl.log(s_1), tl.log(s_2), tl.log(s_3)))
    cost = (16.0 * tl.load(beta_v + j) + 0.5 * log_sum) * whole * factor
    a = 1.0 / (1.0 + tl.exp(-steepness * (tl.load(beta_a + j) - cost)))
    mine = there & (g == 0)  # the first of G stores for all
    store_rows(mean + parent * 16, (m_0, m_1, m_2, m_3), mine)
    store_rows(variance + parent * 16, (s_0, s_1, s_2, s_3), mine)
    tl.store(total + parent, whole, mask=mine)
    tl.store(active + parent, a, mask=mine)

    constant = tl.log(a + TINY) - 0.5 * (log_sum + 16.0 * LOG_2_PI)
    r_0, r_1, r_2, r_3 = 1.0 / s_0, 1.0 / s_1, 1.0 / s_2, 1.0 / s_3
    u_0, u_1, u_2, u_3 = -m_0, -m_1, -m_2, -m_3
    for first in range(0, explained, G):
        inside = there & (first + g < K)
        k = tl.minimum(first + g, K - 1)
        c = child_at(k, row, column, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS)
        W = load_rows(weight + matrix_at(k, ROWS, BY_ROWS, SHARED) * (J * 16))
        d_0, d_1, d_2, d_3 = offsets_of(load_rows(poses + c * 16), W, places, k, u_0, u_1, u_2, u_3)
        far = over_entries((d_0 * d_0 * r_0, d_1 * d_1 * r_1, d_2 * d_2 * r_2, d_3 * d_3 * r_3))
        tl.store(logits + link + k * J, constant - 0.5 * far, mask=inside)


@triton.jit
@no_type_check
def merged(S, m, s, whole, inverse, G: tl.constexpr):
    """Mean and variance of all children, from the sums of weights S, means m and squares s of G parts."""
    centre = over_children(S[:, None] * m, G) * reciprocal(tl.maximum(whole, SMALLEST))[:, None]
    apart = m - centre
    squares = over_children(s + S[:, None] * (apart * apart), G)
    shift = centre * (inverse * TINY)[:, None]
    normal = (whole * inverse)[:, None]
    return centre * normal, squares * inverse[:, None] + normal * (shift * shift) + TINY


@kernel("begins", "explained", "has_mean", "has_active")
@no_type_check
def slopes_kernel(
    poses, activations, weight, places, beta_v, couplings, mean, variance, total, active,
    grad_mean, grad_active, at_logits, at_couplings, at_first, linear, square, at_beta_v, at_beta_a,
    begins, explained, has_mean, has_active, steepness, factor, B,
    L, BY_L, K, J, n, ROWS, BY_ROWS, LX, BY_LX, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS, STRIDE,
    X: tl.constexpr, Jp: tl.constexpr, T: tl.constexpr, G: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """A step back from an iteration's parents to the weights of their children.

    The gradients at the parents are given (`grad_mean`, `grad_active`, if there are such), or come from those
    `at_logits` of the E-step that followed, which explained all children or none. What is written: the gradient at the
    weights (B L K J) `at_couplings`; or, where routing `begins` and `couplings` are equal shares (n), its sum over
    parents times the share (B L K) `at_first`. Then, for the
    votes' gradient, which is weight * (linear + square * (vote - mean)): both (B L J 16); and the betas' (B L J).
    """
    l = tl.program_id(0)
    row, column = (l // LX) * STRIDE, (l % LX) * STRIDE
    j, t, g = axes(X, Jp, T)
    b = tl.program_id(1) * T + t
    there = (b < B) & (j < J)
    b, j = tl.minimum(b, B - 1).to(tl.int64), tl.minimum(j, J - 1)
    poses += b * (n * 16)
    activations += b * n
    weight += j * 16
    parent = (b * L + l) * J + j
    link = (b * L + l) * (K * J) + j
    begins = begins != 0
    couplings += tl.where(begins, 0, link)
    m = load_rows(mean + parent * 16)
    u_0, u_1, u_2, u_3 = -m[0], -m[1], -m[2], -m[3]
    var = load_rows(variance + parent * 16)
    S, a = tl.load(total + parent), tl.load(active + parent)
    rate = 1.0 / var[0], 1.0 / var[1], 1.0 / var[2], 1.0 / var[3]

    at_active = tl.zeros([X], tl.float32)
    at_m_0, at_m_1, at_m_2, at_m_3 = zero_rows(X)
    at_s_0, at_s_1, at_s_2, at_s_3 = zero_rows(X)
    for first in range(0, explained, G):
        inside = there & (first + g < K)
        k = tl.minimum(first + g, K - 1)
        c = child_at(k, row, column, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS)
        W = load_rows(weight + matrix_at(k, ROWS, BY_ROWS, SHARED) * (J * 16))
        d_0, d_1, d_2, d_3 = offsets_of(load_rows(poses + c * 16), W, places, k, u_0, u_1, u_2, u_3)
        slope = tl.where(inside, tl.load(at_logits + link + k * J), 0.0)
        at_active += slope
        slope = slope[:, None]
        at_m_0 += slope * d_0
        at_m_1 += slope * d_1
        at_m_2 += slope * d_2
        at_m_3 += slope * d_3
        at_s_0 += slope * d_0 * d_0
        at_s_1 += slope * d_1 * d_1
        at_s_2 += slope * d_2 * d_2
        at_s_3 += slope * d_3 * d_3
    at_active = over_children(at_active, G)
    at_m_0, at_s_0 = density_gradient(at_m_0, at_s_0, at_active, rate[0], G)
    at_m_1, at_s_1 = density_gradient(at_m_1, at_s_1, at_active, rate[1], G)
    at_m_2, at_s_2 = density_gradient(at_m_2, at_s_2, at_active, rate[2], G)
    at_m_3, at_s_3 = density_gradient(at_m_3, at_s_3, at_active, rate[3], G)
    at_active /= a + TINY
    given = load_rows_if(j < J * has_mean, grad_mean + parent * 16)
    at_m_0, at_m_1, at_m_2, at_m_3 = at_m_0 + given[0], at_m_1 + given[1], at_m_2 + given[2], at_m_3 + given[3]
    at_active += tl.load(grad_active + parent, mask=j < J * has_active, other=0.0)

    slope_a = steepness * at_active * a * (1.0 - a)
    at_cost = -factor * slope_a
    log_sum = over_entries((tl.log(var[0]), tl.log(var[1]), tl.log(var[2]), tl.log(var[3])))
    at_total = at_cost * (16.0 * tl.load(beta_v + j) + 0.5 * log_sum)
    half = 0.5 * at_cost * S
    inverse = 1.0 / (S + TINY)
    at_m_0, at_s_0 = normal_gradient(at_m_0, at_s_0, u_0, rate[0], half, inverse)
    at_m_1, at_s_1 = normal_gradient(at_m_1, at_s_1, u_1, rate[1], half, inverse)
    at_m_2, at_s_2 = normal_gradient(at_m_2, at_s_2, u_2, rate[2], half, inverse)
    at_m_3, at_s_3 = normal_gradient(at_m_3, at_s_3, u_3, rate[3], half, inverse)
    mine = there & (g == 0)  # the first of G stores for all
    store_rows(square + parent * 16, (2 * at_s_0, 2 * at_s_1, 2 * at_s_2, 2 * at_s_3), mine)
    tl.store(at_beta_v + parent, 16.0 * at_cost * S, mask=mine)
    tl.store(at_beta_a + parent, slope_a, mask=mine)

    spread = at_s_0 * (var[0] - TINY), at_s_1 * (var[1] - TINY), at_s_2 * (var[2] - TINY), at_s_3 * (var[3] - TINY)
    constant = at_total - over_entries(spread)
    e_0, e_1, e_2, e_3 = zero_rows(X)
    for first in range(0, K, G):
        inside = there & (first + g < K)
        k = tl.minimum(first + g, K - 1)
        c = child_at(k, row, column, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS)
        W = load_rows(weight + matrix_at(k, ROWS, BY_ROWS, SHARED) * (J * 16))
        d_0, d_1, d_2, d_3 = offsets_of(load_rows(poses + c * 16), W, places, k, u_0, u_1, u_2, u_3)
        slope = constant + over_entries(
            (
                d_0 * (at_m_0 + at_s_0 * d_0),
                d_1 * (at_m_1 + at_s_1 * d_1),
                d_2 * (at_m_2 + at_s_2 * d_2),
                d_3 * (at_m_3 + at_s_3 * d_3),
            )
        )
        w, share = weights_of(activations, couplings, begins, c, k * J, inside)
        w = w[:, None]
        e_0 += w * d_0
        e_1 += w * d_1
        e_2 += w * d_2
        e_3 += w * d_3
        if begins:
            slope = over_parents(tl.where(inside, slope * share, 0.0), Jp)
            tl.store(at_first + (b * L + l) * K + k, slope, mask=inside & (j == 0))
        else:
            tl.store(at_couplings + link + k * J, slope, mask=inside)
    # The votes' gradient is steep where a variance is small, and the mean is rounded: where it lies from the votes'
    # middle is measured, and taken off.
    e_0 = corrected(at_m_0, at_s_0, u_0, e_0, inverse, G)
    e_1 = corrected(at_m_1, at_s_1, u_1, e_1, inverse, G)
    e_2 = corrected(at_m_2, at_s_2, u_2, e_2, inverse, G)
    e_3 = corrected(at_m_3, at_s_3, u_3, e_3, inverse, G)
    store_rows(linear + parent * 16, (e_0, e_1, e_2, e_3), mine)


@triton.jit
@no_type_check
def density_gradient(by_offset, by_square, total, rate, G: tl.constexpr):
    """The gradients at mean and variance of log densities, from sums over G children of slopes times offsets."""
    at_mean = over_children(by_offset, G) * rate
    return at_mean, 0.5 * rate * (over_children(by_square, G) * rate - total[:, None])


@triton.jit
@no_type_check
def normal_gradient(at_mean, at_variance, u, rate, half, inverse):
    """What multiplies a vote's offset, and its square, in the gradient at its weight; u is the mean times -1,
    `half` what the activation does to the variance.
    """
    at_variance += half[:, None] * rate
    at_mean += (inverse * (2.0 * TINY))[:, None] * u * at_variance
    at_mean *= inverse[:, None]
    at_variance *= inverse[:, None]
    return at_mean, at_variance


@triton.jit
@no_type_check
def corrected(at_mean, at_variance, u, offsets, inverse, G: tl.constexpr):
    """What multiplies a vote's offset, with the measured mean offset in place of the one that should be."""
    measured = over_children(offsets, G) * inverse[:, None]
    return at_mean - 2.0 * at_variance * (measured + u * (inverse * TINY)[:, None])


@triton.jit
@no_type_check
def tables_of(linear, square, mean, variance, parent, parents, ITERATIONS: tl.constexpr):
    """What the votes' gradient needs of the parents, rows of each: mean, `linear` and `square` of each M-step, and
    the rate of the E-step after it; the last iteration has none, and `square` stands in its place.
    """
    tables = ()
    for i in tl.static_range(ITERATIONS):
        at = (i * parents + parent) * 16
        slopes = load_rows(square + at)
        tables += (load_rows(mean + at), load_rows(linear + at), slopes)
        if i < ITERATIONS - 1:
            var = load_rows(variance + at)
            tables += ((reciprocal(var[0]), reciprocal(var[1]), reciprocal(var[2]), reciprocal(var[3])),)
        else:
            tables += (slopes,)
    return tables


@triton.jit
@no_type_check
def factors_of(a, couplings, at_logits, shares, c, link, links, inside, ITERATIONS: tl.constexpr):
    """What multiplies the tables for a vote: its weight in each M-step, its slope in the E-step after it."""
    factors = (tl.where(inside, a * tl.load(shares + c), 0.0),)
    for i in tl.static_range(ITERATIONS - 1):
        slope = tl.where(inside, tl.load(at_logits + i * links + link), 0.0)
        factors += (slope, tl.where(inside, tl.load(couplings + i * links + link) * a, 0.0))
    return factors


@triton.jit
@no_type_check
def vote_gradient(v, factors, tables, p: tl.constexpr, ITERATIONS: tl.constexpr):
    """Row p of the gradient at the votes, whose row is v, from all iterations together.

    Votes are taken from the mean first: near it, where variances are small, the difference of two products would be
    nothing but rounding.
    """
    grad = factors[0][:, None] * tables[1][p]
    for i in tl.static_range(ITERATIONS):
        w = factors[2 * i][:, None]
        times = w * tables[4 * i + 2][p]
        if i < ITERATIONS - 1:
            times -= factors[2 * i + 1][:, None] * tables[4 * i + 3][p]
        if i > 0:
            grad += w * tables[4 * i + 1][p]
        grad += times * (v - tables[4 * i][p])
    return grad


@kernel()
@no_type_check
def poses_kernel(
    poses, activations, weight, places, shares, couplings, at_logits, mean, variance, linear, square, out, B,
    L, BY_L, K, J, n, ROWS, BY_ROWS, LX, BY_LX, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS, STRIDE,
    ITERATIONS: tl.constexpr, X: tl.constexpr, Jp: tl.constexpr, T: tl.constexpr, G: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """What each window gives to the gradients of its children's poses, out (B L K 16)."""
    l = tl.program_id(0)
    row, column = (l // LX) * STRIDE, (l % LX) * STRIDE
    j, t, g = axes(X, Jp, T)
    b = tl.program_id(1) * T + t
    there = (b < B) & (j < J)
    b, j = tl.minimum(b, B - 1).to(tl.int64), tl.minimum(j, J - 1)
    poses += b * (n * 16)
    activations += b * n
    weight += j * 16
    link = (b * L + l) * (K * J) + j
    pairs = tl.cast(B, tl.int64) * L
    tables = tables_of(linear, square, mean, variance, (b * L + l) * J + j, pairs * J, ITERATIONS)
    out += (b * L + l) * (K * 16)
    for first in range(0, K, G):
        inside = there & (first + g < K)
        k = tl.minimum(first + g, K - 1)
        c = child_at(k, row, column, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS)
        W = load_rows(weight + matrix_at(k, ROWS, BY_ROWS, SHARED) * (J * 16))
        v = votes_of(load_rows(poses + c * 16), W, places, k)
        a = tl.load(activations + c)
        factors = factors_of(a, couplings, at_logits, shares, c, link + k * J, pairs * (K * J), inside, ITERATIONS)
        back = ()
        for p in tl.static_range(4):
            grad = vote_gradient(v[p], factors, tables, p, ITERATIONS)
            row_p = tl.join(
                tl.join(tl.sum(grad * W[0], axis=1), tl.sum(grad * W[2], axis=1)),
                tl.join(tl.sum(grad * W[1], axis=1), tl.sum(grad * W[3], axis=1)),
            )
            back += (over_parents(tl.reshape(row_p, (X, 4)), Jp),)
        store_rows(out + k * 16, back, inside & (j == 0))


@kernel("chunk")
@no_type_check
def weight_kernel(
    poses, activations, weight, places, shares, couplings, at_logits, mean, variance, linear, square, out, B, chunk,
    L, BY_L, K, J, n, ROWS, BY_ROWS, LX, BY_LX, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS, STRIDE,
    ITERATIONS: tl.constexpr, X: tl.constexpr, Jp: tl.constexpr, T: tl.constexpr, G: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """The gradient of the matrices of G children, from one chunk of all pairs of sample and position: a part of out
    (chunks K J 16). Here T counts such pairs.
    """
    j, t, g = axes(X, Jp, T)
    there, j = j < J, tl.minimum(j, J - 1)
    begin = tl.program_id(1) * chunk
    all_pairs = tl.cast(B, tl.int64) * L
    k = tl.minimum(tl.program_id(0) * G + g, K - 1)
    W = load_rows(weight + (matrix_at(k, ROWS, BY_ROWS, SHARED) * J + j) * 16)
    sum_0, sum_1, sum_2, sum_3 = zero_rows(X)
    next_b, next_l = (begin + t) // L, (begin + t) % L
    for _ in range(0, chunk, T):
        inside = there & (next_b < B)
        b, l = tl.minimum(next_b, B - 1).to(tl.int64), next_l
        y = divided(l, BY_LX)
        c = child_at(k, y * STRIDE, (l - y * LX) * STRIDE, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS)
        more = divided(next_l + T, BY_L)
        next_b, next_l = next_b + more, next_l + T - more * L
        pose = load_rows(poses + (b * n + c) * 16)
        v = votes_of(pose, W, places, k)
        tables = tables_of(linear, square, mean, variance, (b * L + l) * J + j, all_pairs * J, ITERATIONS)
        link = ((b * L + l) * K + k) * J + j
        a = tl.load(activations + b * n + c)
        factors = factors_of(a, couplings, at_logits, shares, c, link, all_pairs * (K * J), inside, ITERATIONS)
        for p in tl.static_range(4):
            grad = vote_gradient(v[p], factors, tables, p, ITERATIONS)
            pose_p = numbers(pose[p])
            sum_0 += pose_p[0][:, None] * grad
            sum_1 += pose_p[1][:, None] * grad
            sum_2 += pose_p[2][:, None] * grad
            sum_3 += pose_p[3][:, None] * grad
    sums = over_pairs(sum_0, Jp, T), over_pairs(sum_1, Jp, T), over_pairs(sum_2, Jp, T), over_pairs(sum_3, Jp, T)
    y = tl.arange(0, X // T)  # a child and a parent
    j_y, k_y = y % Jp, tl.program_id(0) * G + y // Jp
    at = ((tl.program_id(1) * K + k_y).to(tl.int64) * J + j_y) * 16
    store_rows(out + at, sums, (j_y < J) & (k_y < K))


@triton.jit
@no_type_check
def over_pairs(x, Jp: tl.constexpr, T: tl.constexpr):
    """The sum over T of rows [X, 4], one for each child and parent."""
    X: tl.constexpr = x.shape[0]
    return tl.reshape(tl.sum(tl.reshape(x, (X // (Jp * T), T, Jp, 4)), axis=1), (X // T, 4))
