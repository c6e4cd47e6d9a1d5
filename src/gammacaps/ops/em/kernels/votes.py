"""What the kernels that go over the children of a position share.

A program's X threads are X triples (child, sample, parent), the parent running fastest: the lanes of a warp are all J
parents of some samples, the warps take different children at a time. So sums over parents are exchanged within a
warp, and sums over children once, at the end. A pose is four rows [X, 4], one tensor each: then there are as many rows
as threads, Triton has no choice where to put them, and a thread holds all 16 entries. Numbers are [X]. What many
threads need is loaded by each of them, which costs less than handing it round.
"""

from typing import no_type_check

import triton
import triton.language as tl

from gammacaps.ops.em import formula

TINY = tl.constexpr(formula.TINY)
SMALLEST = tl.constexpr(1e-30)  # sums below it count as this where they are divided by
LOG_2_PI = tl.constexpr(1.8378770664093453)


@triton.jit
@no_type_check
def axes(X: tl.constexpr, Jp: tl.constexpr, T: tl.constexpr):
    """The parent, sample and child of each thread."""
    x = tl.arange(0, X)
    return x % Jp, (x // Jp) % T, x // (Jp * T)


@triton.jit
@no_type_check
def load_rows(at):
    """The four rows [X, 4] of poses that begin at pointers [X]."""
    at = at[:, None] + tl.arange(0, 4)[None, :]
    return tl.load(at), tl.load(at + 4), tl.load(at + 8), tl.load(at + 12)


@triton.jit
@no_type_check
def load_rows_if(wanted, at):
    """`load_rows` where `wanted` [X], zeros elsewhere."""
    at, wanted = at[:, None] + tl.arange(0, 4)[None, :], wanted[:, None]
    return (
        tl.load(at, mask=wanted, other=0.0),
        tl.load(at + 4, mask=wanted, other=0.0),
        tl.load(at + 8, mask=wanted, other=0.0),
        tl.load(at + 12, mask=wanted, other=0.0),
    )


@triton.jit
@no_type_check
def store_rows(at, rows, mask):
    """`load_rows`, the other way."""
    at = at[:, None] + tl.arange(0, 4)[None, :]
    for p in tl.static_range(4):
        tl.store(at + 4 * p, rows[p], mask=mask[:, None])


@triton.jit
@no_type_check
def zero_rows(X: tl.constexpr):
    zero = tl.zeros([X, 4], tl.float32)
    return zero, zero, zero, zero


@triton.jit
@no_type_check
def numbers(row):
    """The four numbers [X] of rows [X, 4]."""
    even, odd = tl.split(tl.reshape(row, (row.shape[0], 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
@no_type_check
def row_from(start, row, W):
    """A row times matrices W, added to a start: four instructions an entry, as many as without one."""
    n = numbers(row)
    return start + n[0][:, None] * W[0] + n[1][:, None] * W[1] + n[2][:, None] * W[2] + n[3][:, None] * W[3]


@triton.jit
@no_type_check
def offsets_of(poses, W, places, k, u_0, u_1, u_2, u_3):
    """The rows of the votes, poses @ W, added to those of u, which is a mean times -1: subtracting it would cost more.

    `places` are what coordinate addition adds to children k.
    """
    if places is not None:
        at = load_rows(places + k * 16)
        u_0, u_1 = u_0 + at[0].to(tl.float32), u_1 + at[1].to(tl.float32)
        u_2, u_3 = u_2 + at[2].to(tl.float32), u_3 + at[3].to(tl.float32)
    return (
        row_from(u_0, poses[0], W),
        row_from(u_1, poses[1], W),
        row_from(u_2, poses[2], W),
        row_from(u_3, poses[3], W),
    )


@triton.jit
@no_type_check
def votes_of(poses, W, places, k):
    """The rows of the votes."""
    u_0, u_1, u_2, u_3 = zero_rows(W[0].shape[0])
    return offsets_of(poses, W, places, k, u_0, u_1, u_2, u_3)


def divisor(d: int) -> int:
    """What `divided` needs to divide by d."""
    return (2**31 - 1) // d


@triton.jit
@no_type_check
def divided(x, by):
    """x // d for `by` = divisor(d), as long as (x + 1) d <= 2^31: one instruction more than a product."""
    return tl.umulhi(2 * (x + 1), by)


@triton.jit
@no_type_check
def child_at(k, row, column, WIDTH, TYPES, BY_TYPES, COLUMNS, BY_COLUMNS):
    """The child that stands at place k of the window whose first place is (row, column)."""
    place = divided(k, BY_TYPES)
    down = divided(place, BY_COLUMNS)
    return ((row + down) * WIDTH + column + place - down * COLUMNS) * TYPES + k - place * TYPES


@triton.jit
@no_type_check
def matrix_at(k, ROWS, BY_ROWS, SHARED: tl.constexpr):
    """Which of the matrices is that of place k; shared ones stand at many places, the type running fastest."""
    return k - divided(k, BY_ROWS) * ROWS if SHARED else k


@triton.jit
@no_type_check
def over_children(x, G: tl.constexpr):
    """The sum over the program's children of numbers [X] or rows [X, 4], for each thread."""
    X: tl.constexpr = x.shape[0]
    entries: tl.constexpr = 1 if len(x.shape) == 1 else 4
    total = tl.sum(tl.reshape(x, (G, X // G, entries)), axis=0, keep_dims=True)
    return tl.reshape(tl.broadcast_to(total, (G, X // G, entries)), x.shape)


@triton.jit
@no_type_check
def over_parents(x, Jp: tl.constexpr):
    """The sum over parents of numbers [X] or rows [X, 4], for each thread."""
    X: tl.constexpr = x.shape[0]
    entries: tl.constexpr = 1 if len(x.shape) == 1 else 4
    total = tl.sum(tl.reshape(x, (X // Jp, Jp, entries)), axis=1, keep_dims=True)
    return tl.reshape(tl.broadcast_to(total, (X // Jp, Jp, entries)), x.shape)


@triton.jit
@no_type_check
def over_entries(rows):
    """The sum over all 16 entries, [X]; one row after the other, so that a product and its sum are one instruction."""
    return tl.sum(rows[0] + rows[1] + rows[2] + rows[3], axis=1)


@triton.jit
@no_type_check
def reciprocal(x):
    """1 / x for x > 0 in four instructions, where a division takes eight: a guess, and one step of Newton's method."""
    root = tl.rsqrt(x)
    guess = root * root
    return guess * (2 - x * guess)
