"""EM routing and its gradient: the kernels in their order, and what is kept between them.

Forward, for each iteration: a fit with the logits of the E-step (`fit_kernel`), the softmax of each child
(`share_kernel`). Kept are the fits (B L J 16 twice) and couplings (B L K J) of each iteration; votes (B L K J 16) never
reach memory. Back, for each iteration: from parents to weights (`slopes_kernel`), through the softmax
(`share_gradient_kernel`). Then all iterations together give each vote its gradient, which goes on to poses
(`poses_kernel`, `gather_kernel`) and, where they learn, to the matrices (`weight_kernel`). Sums have a fixed order, no
size depends on data, and nothing waits for the host, so that a CUDA graph can hold all of it.

`warm_up` compiles what a layer needs, all at once.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from gammacaps.ops.em.formula import cost_factor, inverse_temperature
from gammacaps.ops.em.kernels import children, parents
from gammacaps.ops.em.kernels.votes import divisor
from gammacaps.ops.em.windows import Windows

# Warps of a program that goes over the children of a position: usually, and at most where positions are few. More warps
# take more children at a time. 16 leave 128 registers to a thread, 8 leave 255.
FIT = (4, 16)
SLOPES = (4, 8)
POSES = (4, 8)
# As long as there are fewer warps in all, they are doubled: 8 for each multiprocessor of a large GPU.
FEW = 1024
# Warps, and into how many chunks the pairs of samples and positions are cut at most.
WEIGHT = (4, 64)
# Children of a program, and its warps.
CHILDREN = (32, 4)
# Kernels that are compiled at a time; a compiler takes a core and some 200 MB.
COMPILERS = 16
# With more, a program's warps could not hold all parents of a sample.
MOST_TYPES = 128
# Children of a window, and positions: with more, `divided` would not be exact.
MOST_PLACES = 2**15


class Layer(NamedTuple):
    """What a layer routes by; the weight is (k J 4 4)."""

    weight: Tensor
    beta_v: Tensor  # J
    beta_a: Tensor  # J
    shares: Tensor  # n: one over the number of parents that a child has
    places: Tensor | None  # n 16
    windows: Windows
    iterations: int


class Kept(NamedTuple):
    """What the gradient needs again, I iterations each."""

    mean: Tensor  # I B L J 16
    variance: Tensor  # I B L J 16
    total: Tensor  # I B L J
    active: Tensor  # I B L J
    couplings: Tensor  # I-1 B L K J: of all iterations but the first, whose couplings are equal shares


class Wanted(NamedTuple):
    """Which gradients are asked for beside those of poses and activations."""

    weight: bool
    betas: bool


class Gradients(NamedTuple):
    poses: Tensor  # B n 16
    activations: Tensor  # B n
    weight: Tensor | None  # k J 4 4
    beta_v: Tensor | None  # J
    beta_a: Tensor | None  # J


def tile_of(J: int, warps: int) -> tuple[dict[str, int], int]:
    """A program's threads, and how many parents, samples and children they are; and its warps."""
    Jp = triton.next_power_of_2(J)
    T = max(1, 32 // Jp)
    warps = max(warps, Jp // 32)
    return {"X": 32 * warps, "Jp": Jp, "T": T, "G": 32 * warps // (Jp * T)}, warps


def sizes(layer: Layer) -> dict[str, int]:
    """The sizes that all kernels over positions are given, and what divides by them."""
    windows, J, ROWS = layer.windows, layer.weight.shape[1], len(layer.weight)
    L, K, LX, TYPES, COLUMNS = windows.L, windows.K, windows.grid[1], windows.types, windows.columns
    by = {"BY_L": L, "BY_ROWS": ROWS, "BY_LX": LX, "BY_TYPES": TYPES, "BY_COLUMNS": COLUMNS}
    return {
        "L": L, "K": K, "J": J, "n": windows.children, "ROWS": ROWS, "LX": LX, "WIDTH": windows.width, "TYPES": TYPES,
        "COLUMNS": COLUMNS, "STRIDE": windows.stride, "SHARED": ROWS < K,
        **{name: divisor(d) for name, d in by.items()},
    }  # fmt: skip


def run(kernel: Any, grid: tuple[int, ...], *given: Any, **more: int) -> None:
    """Runs a kernel; with tensors that are nowhere (`meta`) it is only compiled."""
    if given[0].is_meta:
        kernel.warmup(*given, grid=grid, **more)
    else:
        kernel[grid](*given, **more)


def over_positions(kernel: Any, layer: Layer, B: int, how: tuple[int, int], *given: Any, **more: int) -> None:
    """Runs a kernel over all positions and samples."""
    warps, most = how
    tile, warps = tile_of(layer.weight.shape[1], warps)
    grid = (layer.windows.L, triton.cdiv(B, tile["T"]))
    while warps * grid[0] * grid[1] < FEW and 2 * warps <= most and 2 * tile["G"] <= layer.windows.K:
        tile, warps = tile_of(layer.weight.shape[1], 2 * warps)
    run(kernel, grid, *given, B, **sizes(layer), **more, **tile, num_warps=warps)


def over_children(kernel: Any, windows: Windows, B: int, *given: Any, **more: int) -> None:
    """Runs a kernel over all children of all samples."""
    (N, warps), (UP, LEFT), (LY, LX) = CHILDREN, windows.overlap, windows.grid
    run(
        kernel, (triton.cdiv(B * windows.children, N),), *given, B, n=windows.children, LY=LY, LX=LX, K=windows.K,
        WIDTH=windows.width, TYPES=windows.types, WINDOW_ROWS=windows.rows, COLUMNS=windows.columns,
        STRIDE=windows.stride, UP=UP, LEFT=LEFT, N=N, **more, num_warps=warps,
    )  # fmt: skip


def forward(poses: Tensor, activations: Tensor, layer: Layer) -> Kept:
    """Routes poses (B n 16) and activations (B n); the last mean and activations are the parents'."""
    B, J, I, windows = len(poses), layer.weight.shape[1], layer.iterations, layer.windows
    L, K = windows.L, windows.K

    def new(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=poses.device)

    kept = Kept(new(I, B, L, J, 16), new(I, B, L, J, 16), new(I, B, L, J), new(I, B, L, J), new(I - 1, B, L, K, J))
    for i in range(I):
        over_positions(
            parents.fit_kernel, layer, B, FIT, poses, activations, layer.weight, layer.places, layer.beta_v,
            layer.beta_a, kept.couplings[i - 1] if i > 0 else layer.shares, kept.mean[i], kept.variance[i],
            kept.total[i], kept.active[i], kept.couplings[i] if i < I - 1 else kept.active[i], int(i == 0),
            K if i < I - 1 else 0, inverse_temperature(i), cost_factor(K, J),
        )  # fmt: skip
        if i < I - 1:
            over_children(children.share_kernel, windows, B, kept.couplings[i], J=J, Jp=triton.next_power_of_2(J))
    return kept


def backward(
    poses: Tensor,
    activations: Tensor,
    layer: Layer,
    kept: Kept,
    grad_poses: Tensor | None,  # B L J 16
    grad_activations: Tensor | None,  # B L J
    grad_couplings: Tensor | None,  # B L K J
    wanted: Wanted,
) -> Gradients:
    """The gradients of poses, activations, matrices and betas from those at what `forward` gave."""
    B, J, I, windows = len(poses), layer.weight.shape[1], layer.iterations, layer.windows
    L, K = windows.L, windows.K

    def new(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=poses.device)

    linear, square, at_logits = new(I, B, L, J, 16), new(I, B, L, J, 16), new(I - 1, B, L, K, J)
    betas = new(2, I, B, L, J)
    at_first, at_activations = new(B, L, K), torch.empty_like(activations)
    for i in reversed(range(I)):
        last = i == I - 1
        over_positions(
            parents.slopes_kernel, layer, B, SLOPES, poses, activations, layer.weight, layer.places, layer.beta_v,
            kept.couplings[i - 1] if i > 0 else layer.shares, kept.mean[i], kept.variance[i], kept.total[i],
            kept.active[i], kept.mean[i] if grad_poses is None else grad_poses,
            kept.active[i] if grad_activations is None else grad_activations, kept.total[i] if last else at_logits[i],
            at_logits[i - 1] if i > 0 else at_first, at_first, linear[i], square[i], betas[0, i], betas[1, i],
            int(i == 0), 0 if last else K, int(last and grad_poses is not None),
            int(last and grad_activations is not None), inverse_temperature(i), cost_factor(K, J),
        )  # fmt: skip
        if i > 0:
            over_children(
                children.share_gradient_kernel, windows, B, kept.couplings[i - 1], at_logits[i - 1],
                grad_couplings if last else None, activations, at_activations,
                adds=int(not last), J=J, Jp=triton.next_power_of_2(J),
            )  # fmt: skip
    tensors = (
        poses, activations, layer.weight, layer.places, layer.shares, kept.couplings, at_logits, kept.mean,
        kept.variance, linear, square,
    )  # fmt: skip
    by_window, at_poses = new(B, L, K, 16), torch.empty_like(poses)
    over_positions(parents.poses_kernel, layer, B, POSES, *tensors, by_window, ITERATIONS=I)
    over_children(children.gather_kernel, windows, B, by_window, at_first, at_poses, at_activations, ADD=I > 1)
    at_weight = weight_gradient(layer, B, tensors) if wanted.weight else None
    at_beta_v, at_beta_a = betas.sum((1, 2, 3)).unbind() if wanted.betas else (None, None)
    return Gradients(at_poses, at_activations, at_weight, at_beta_v, at_beta_a)


def weight_gradient(layer: Layer, B: int, tensors: tuple[Tensor | None, ...]) -> Tensor:
    """The gradient of the matrices (k J 4 4), in chunks that are then added up."""
    J, (warps, most), K, pairs = layer.weight.shape[1], WEIGHT, layer.windows.K, B * layer.windows.L
    tile, warps = tile_of(J, warps)
    chunk = tile["T"] * triton.cdiv(triton.cdiv(pairs, most), tile["T"])
    chunks = triton.cdiv(pairs, chunk)
    parts = torch.empty(chunks, K, J, 16, dtype=torch.float32, device=layer.weight.device)
    grid = (triton.cdiv(K, tile["G"]), chunks)
    run(
        parents.weight_kernel, grid, *tensors, parts, B, chunk, **sizes(layer), ITERATIONS=layer.iterations, **tile,
        num_warps=warps,
    )  # fmt: skip
    # Shared matrices stand at many places, the type running fastest.
    return parts.view(-1, *layer.weight.shape).sum(0)


@cache
def warm_up(
    J: int, ROWS: int, windows: Windows, iterations: int, places: torch.dtype | None, B: int, learns: bool | None
) -> None:
    """Compiles the kernels for B samples in threads, where one after the other they would take much longer.

    `learns` says if matrices have a gradient; None, that nothing has. A layer's kernels are those of the next one too,
    as far as they have the same tiles.
    """

    def of(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    n, L = windows.children, windows.L
    at = None if places is None else of(n, 16, dtype=places)
    layer = Layer(of(ROWS, J, 4, 4), of(J), of(J), of(n), at, windows, iterations)
    given = of(B, n, 16), of(B, n), layer
    with ThreadPoolExecutor(COMPILERS) as threads, triton.AsyncCompileMode(threads):
        kept = forward(*given)
        if learns is not None:
            backward(*given, kept, of(B, L, J, 16), of(B, L, J), None, Wanted(learns, betas=False))
