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
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from gammacaps.ops.routing.kernels.many.kernels import (
    _agree_kernel,
    _couple_kernel,
    _gather_kernel,
    _poses_gradient_kernel,
    _uncouple_kernel,
    _weight_gradient_kernel,
)
from gammacaps.ops.routing.rules import is_sda, scale
from gammacaps.ops.vectors import squash, squash_gradient

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


class _Inputs(NamedTuple):
    """The lower capsules as the kernels read them, a run of them or all: samples last, and padded with zeros."""

    poses: Tensor  # I d padded
    most: Tensor  # I padded: the lengths of the poses
    weight: Tensor  # I J d D
    samples: int
    sda: bool

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
    return _Inputs(turned, torch.linalg.vector_norm(turned, dim=1), weight, B, is_sda(rule))


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
        links.stride(1), SDA=inputs.sda, BACK=grad_s is not None, d=d, D=D, P=tiles.P, JT=tiles.JT,
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
        SDA=inputs.sda, EVEN=factors is None, CENTRED=toward is not None,
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
        SCALE=scale(J), SDA=inputs.sda, ROW=block, num_warps=warps,
    )  # fmt: skip


def _uncouple(inputs: _Inputs, links: Tensor, slopes: Tensor, grad_c: Tensor | None) -> None:
    """Turns links into couplings and u . gs into slopes (both I B J), in place; grad_c is (I B J) too."""
    I, J, _, _ = inputs.weight.shape
    block, warps = _row(J)
    grad_strides = (0, 0, 0) if grad_c is None else grad_c.stride()
    _uncouple_kernel[(I, inputs.samples)](
        links, slopes, links if grad_c is None else grad_c, J, links.stride(0), links.stride(1), *grad_strides,
        SCALE=scale(J), SDA=inputs.sda, ADD=grad_c is not None, ROW=block, num_warps=warps,
    )  # fmt: skip


def _toward(sums: Tensor, sda: bool) -> Tensor:
    """What the votes agree with in each iteration but the first (r-1, B, J, D): v of the last one, or V, all before."""
    v = squash(sums[:-1])
    return v if sda else v.cumsum(dim=0)


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
            toward = _toward(sums[: k + 1], inputs.sda)[-1]
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
            _gather(run, memory[1], toward[k - 1] if inputs.sda else None, partial)
        grad_c = None  # it was the gradient of the last iteration's couplings only
        if inputs.sda:
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
        SDA=inputs.sda, R=grad_s.shape[0], d=d, D=D, Q=tiles.Q, P=tiles.P, N=tiles.N, JT=tiles.JT,
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
        SDA=inputs.sda, R=grad_s.shape[0], d=d, D=D, Q=tiles.Q, P=tiles.P, N=tiles.N, JT=tiles.JT,
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
    inputs = _inputs(poses, weight, rule)
    toward = _toward(sums[:iterations], inputs.sda)
    by_link = None if grad_c is None else grad_c.float().transpose(0, 1)  # I B J
    grad_s = _sums_gradient(inputs, grad_v, by_link, sums[:iterations], toward)
    grad_poses = torch.empty_like(inputs.poses) if want_poses else None
    grad_weight = torch.empty_like(weight, dtype=torch.float32) if want_weight else None
    if want_poses or want_weight:
        _inputs_gradient(inputs, grad_s, by_link, toward, grad_poses, grad_weight)
    if grad_poses is not None:
        grad_poses = grad_poses[:, :, : poses.shape[0]].permute(2, 0, 1)
    return grad_poses, grad_weight, grad_s.sum(dim=(0, 1))
