"""Convolutions whose channels fill whole blocks, as implicit matrix products.

The rows of a tile are many samples at one place, its columns are filters (backward: channels), and it walks over the
kernel's taps. The copy engine (TMA) fetches one tap's block of all rows as a box of the tensor, so there is no address
arithmetic; samples past the last arrive as zeros.
"""

from functools import lru_cache
from itertools import product
from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Int
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from gammacaps.ops.convolution.kernels.weights import LINE, Arranged, precision
from gammacaps.ops.kernels.squash import squash_factor

LEAST_STEPS = 8  # a program's share of a forward pass is at least so many blocks, or writing sums costs more
SHARED = 200 * 1024  # bytes of shared memory for a tile's blocks in flight, of the 227 KiB there are


class Tiles(NamedTuple):
    """The shape of the tiles: so many samples by `across` columns of the product."""

    samples: int
    across: int
    stages: int
    warps: int


def tiles_for(dtype: torch.dtype, B: int, columns: int) -> Tiles:
    """The largest tiles that the batch and the product's columns fill.

    128 x 256 is the largest whose sums fit in the registers of two warp groups: each byte that comes to an SM is then
    used most. Float32 is split into three products, which needs twice the registers. 64 is the tensor cores' least.
    """
    samples = 64 if B <= 64 else 128
    across = min(512 // dtype.itemsize, max(16, triton.next_power_of_2(columns)))
    stages = min(4, SHARED // (per_processor(across) * LINE * (samples + across)))
    return Tiles(samples, across, stages, warps=max(4, samples * across * dtype.itemsize // 8192))


def per_processor(across: int) -> int:
    """How many programs are to share an SM: two, unless their tiles are the widest."""
    return 1 if across == 256 else 2


@lru_cache
def processors(device: torch.device) -> int:
    """The number of SMs. Without a GPU any number will do to test."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 3


def fits(dtype: torch.dtype, summed: int) -> bool:
    """Whether the channels that are summed fill whole blocks of LINE bytes."""
    return summed % (LINE // dtype.itemsize) == 0


def squashes(size: int) -> bool:
    """Whether `forward` can squash groups of this size itself: whether they fill every tile without a rest."""
    return size <= 128 and size == triton.next_power_of_2(size)


def boxes(images: Tensor, samples: int, depth: int) -> TensorDescriptor:
    """Images [B, H, W, C] as boxes of so many samples at one place, by `depth` channels."""
    B, H, W, C = images.shape
    return TensorDescriptor(images, [H, W, B, C], [W * C, C, H * W * C, 1], [1, 1, samples, depth])


# ------------------------------------------------------------------------------------- forward


def forward(
    images: Tensor,
    arranged: Arranged,
    bias: Tensor,
    stride: int,
    relu: bool,
    out: Tensor,
    squashed: Tensor | None = None,
    size: int = 1,
    tiles: Tiles | None = None,
) -> None:
    """The convolution, then ReLU where asked; where `squashed` is given, also its squash in groups of `size`.

    The blocks of all tiles, one after the other, are dealt out evenly, so that all programs end together. One that
    ends inside a tile leaves it to the next, so each tile is the sum of a few parts, which a second kernel adds.
    """
    weight, K, C, k = arranged.forward, arranged.filters, arranged.channels, arranged.kernel
    images = images.to(weight.dtype).contiguous()
    B, height, width, _ = out.shape
    tiles = tiles or tiles_for(weight.dtype, B, K)
    depth = LINE // weight.element_size()
    steps = k * k * C // depth  # blocks a tile
    batches = triton.cdiv(B, tiles.samples)
    count = batches * height * width * triton.cdiv(K, tiles.across)
    total = count * steps
    programs = max(1, min(processors(out.device) * per_processor(tiles.across), total // LEAST_STEPS))
    # Part (program, tile) lies at program + tile: each step to the next part is a step of one of the two.
    parts = torch.empty(programs + count, tiles.samples, tiles.across, dtype=torch.float32, device=out.device)
    wide_kernel[(programs,)](
        boxes(images, tiles.samples, depth),
        TensorDescriptor.from_tensor(weight, [tiles.across, depth]),
        parts,
        total,
        batches,
        height,
        width,
        C=C,
        k=k,
        s=stride,
        STEPS=steps,
        BB=tiles.samples,
        BN=tiles.across,
        BK=depth,
        PRECISION=precision(weight.dtype),
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    rows = max(1, 1024 // tiles.across)  # 8 numbers a thread: little enough to have all parts in flight
    finish_kernel[(count, tiles.samples // rows)](
        parts,
        bias,
        out,
        out if squashed is None else squashed,
        total,
        programs,
        B,
        batches,
        height,
        width,
        K=K,
        STEPS=steps,
        PARTS=triton.cdiv(steps * programs, total) + 1,
        BB=tiles.samples,
        BN=tiles.across,
        BR=rows,
        RELU=relu,
        SIZE=0 if squashed is None else size,
        num_warps=4,
    )


@triton.jit
@no_type_check
def tile_place(tile, batches, Ho, Wo, BB: tl.constexpr, BN: tl.constexpr):
    """The first sample, the place and the first filter of a tile. Samples run fastest: they share the weight."""
    b0 = tile % batches * BB
    x = tile // batches % Wo
    y = tile // (batches * Wo) % Ho
    n0 = tile // (batches * Wo * Ho) * BN
    return b0, y, x, n0


@triton.jit(do_not_specialize=["total", "batches", "Ho", "Wo"])  # one compilation for all batches
@no_type_check
def wide_kernel(
    images,  # [H, W, B, C]
    weight,  # [K, k k C]
    parts,  # [programs + tiles, BB, BN]
    total,
    batches,
    Ho,
    Wo,
    C: tl.constexpr,
    k: tl.constexpr,
    s: tl.constexpr,
    STEPS: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    CHUNKS: tl.constexpr = C // BK
    program = tl.program_id(0)
    first = program * total // tl.num_programs(0)
    last = (program + 1) * total // tl.num_programs(0)
    for tile in range(first // STEPS, (last + STEPS - 1) // STEPS):
        b0, y, x, n0 = tile_place(tile, batches, Ho, Wo, BB, BN)
        sums = tl.zeros((BB, BN), tl.float32)
        for step in range(tl.maximum(first - tile * STEPS, 0), tl.minimum(last - tile * STEPS, STEPS)):
            tap = step // CHUNKS
            pixels = images.load([y * s + tap // k, x * s + tap % k, b0, step % CHUNKS * BK]).reshape(BB, BK)
            filters = weight.load([n0, step * BK])  # BN BK
            sums = tl.dot(pixels, filters.T, sums, input_precision=PRECISION)
        part = parts + (program + tile).to(tl.int64) * (BB * BN)
        tl.store(part + tl.arange(0, BB)[:, None] * BN + tl.arange(0, BN)[None, :], sums)


@triton.jit(do_not_specialize=["total", "programs", "B", "batches", "Ho", "Wo"])  # one compilation for all batches
@no_type_check
def finish_kernel(
    parts,  # [programs + tiles, BB, BN]
    bias,
    out,  # [B, Ho, Wo, K]
    squashed,  # [B, Ho, Wo, K]
    total,
    programs,
    B,
    batches,
    Ho,
    Wo,
    K: tl.constexpr,
    STEPS: tl.constexpr,
    PARTS: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BR: tl.constexpr,
    RELU: tl.constexpr,
    SIZE: tl.constexpr,
):
    """Sums each tile's parts and adds the bias; then ReLU, or squash into another tensor."""
    tile = tl.program_id(0)
    b0, y, x, n0 = tile_place(tile, batches, Ho, Wo, BB, BN)
    # The programs that hold the tile's first and last block.
    first = ((tile * STEPS + 1) * programs - 1) // total
    last = ((tile + 1) * STEPS * programs - 1) // total
    row = tl.program_id(1) * BR + tl.arange(0, BR)
    column = tl.arange(0, BN)
    n = n0 + column
    part = parts + (first + tile).to(tl.int64) * (BB * BN) + row[:, None] * BN + column[None, :]
    sums = tl.zeros((BR, BN), tl.float32) + tl.load(bias + n, mask=n < K, other=0.0).to(tl.float32)[None, :]
    for i in tl.static_range(PARTS):
        there = row[:, None] < tl.where(first + i <= last, BB, 0)
        sums += tl.load(part + i * (BB * BN), mask=there, other=0.0)
    if RELU:
        sums = tl.where(sums < 0.0, 0.0, sums)  # keeps NaN
    b = b0 + row
    where = (((b.to(tl.int64) * Ho + y) * Wo + x) * K)[:, None] + n[None, :]
    there = (b < B)[:, None] & (n < K)[None, :]
    tl.store(out + where, sums.to(out.dtype.element_ty), mask=there)
    if SIZE > 0:
        groups = tl.reshape(sums, (BR, BN // SIZE, SIZE))
        square = tl.sum(groups * groups, 2)
        groups = groups * squash_factor(square)[:, :, None]
        tl.store(squashed + where, tl.reshape(groups, (BR, BN)), mask=there)


# ------------------------------------------------------------------------------------- input gradient


def input_gradient(
    grad: Tensor, arranged: Arranged, stride: int, relu_of: Tensor | None, out: Tensor, tiles: Tiles | None = None
) -> None:
    """Each tile walks over the taps its pixel has, and over no others."""
    weight, K, C, k = arranged.backward, arranged.filters, arranged.channels, arranged.kernel
    B, height, width, _ = grad.shape
    _, H, W, _ = out.shape
    tiles = tiles or gradient_tiles(weight.dtype, out)
    depth = LINE // weight.element_size()
    batches, columns = triton.cdiv(B, tiles.samples), triton.cdiv(C, tiles.across)
    wide_gradient_kernel[(H * W * batches * columns,)](
        boxes(grad, tiles.samples, depth),
        TensorDescriptor.from_tensor(weight.view(C, k * k * K), [tiles.across, depth]),
        pixel_order(H, W, height, width, k, stride, out.device),
        out if relu_of is None else relu_of.contiguous(),
        out,
        B,
        H,
        W,
        height,
        width,
        batches,
        columns,
        C=C,
        K=K,
        k=k,
        s=stride,
        BB=tiles.samples,
        BN=tiles.across,
        BK=depth,
        RELU=relu_of is not None,
        PRECISION=precision(weight.dtype),
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


def gradient_tiles(dtype: torch.dtype, out: Tensor) -> Tiles:
    """With few tiles the one with most taps is the last to end: half its width is then half the time."""
    B, H, W, C = out.shape
    tiles = tiles_for(dtype, B, C)
    count = H * W * triton.cdiv(B, tiles.samples) * triton.cdiv(C, tiles.across)
    return tiles_for(dtype, B, 128) if tiles.across == 256 and count < 2 * processors(out.device) else tiles


def taps(y: int, k: int, stride: int, outputs: int) -> int:
    """How many taps pixel y has along one side of the image.

    Of pixel y = stride q + r, the taps are r + stride j, and the output place under tap j is q - j.
    """
    q, r = divmod(y, stride)
    return max(0, min(triton.cdiv(k - r, stride), q + 1) - max(0, q - outputs + 1))


@lru_cache(maxsize=64)
def pixel_order(
    H: int, W: int, height: int, width: int, k: int, stride: int, device: torch.device
) -> Int[Tensor, "HW 2"]:
    """All pixels (y, x), those with most taps first: the short ones then fill the gaps at the end."""
    down, across = [taps(y, k, stride, height) for y in range(H)], [taps(x, k, stride, width) for x in range(W)]
    order = sorted(product(range(H), range(W)), key=lambda pixel: -down[pixel[0]] * across[pixel[1]])
    return torch.tensor(order, dtype=torch.int32, device=device)


@triton.jit(do_not_specialize=["B", "H", "W", "Ho", "Wo", "batches", "columns"])  # one compilation for all batches
@no_type_check
def wide_gradient_kernel(
    grad,  # [Ho, Wo, B, K]
    weight,  # [C, k k K]
    order,  # [H W, 2]
    relu_of,  # [B, H, W, C]
    out,  # [B, H, W, C]
    B,
    H,
    W,
    Ho,
    Wo,
    batches,
    columns,
    C: tl.constexpr,
    K: tl.constexpr,
    k: tl.constexpr,
    s: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    RELU: tl.constexpr,
    PRECISION: tl.constexpr,
):
    CHUNKS: tl.constexpr = K // BK
    program = tl.program_id(0)
    n0 = program % columns * BN
    b0 = program // columns % batches * BB
    pixel = program // (columns * batches)
    y = tl.load(order + 2 * pixel)
    x = tl.load(order + 2 * pixel + 1)
    # As in `taps`.
    qy = y // s
    qx = x // s
    first_y = tl.maximum(qy - Ho + 1, 0)
    first_x = tl.maximum(qx - Wo + 1, 0)
    taps_y = tl.maximum(tl.minimum((k - y % s + s - 1) // s, qy + 1) - first_y, 0)
    taps_x = tl.maximum(tl.minimum((k - x % s + s - 1) // s, qx + 1) - first_x, 0)
    sums = tl.zeros((BB, BN), tl.float32)
    for step in range(taps_y * taps_x * CHUNKS):
        tap = step // CHUNKS
        chunk = step % CHUNKS * BK
        jy = first_y + tap // taps_x
        jx = first_x + tap % taps_x
        ky = y % s + s * jy
        kx = x % s + s * jx
        places = grad.load([qy - jy, qx - jx, b0, chunk]).reshape(BB, BK)
        channels = weight.load([n0, (ky * k + kx) * K + chunk])  # BN BK
        sums = tl.dot(places, channels.T, sums, input_precision=PRECISION)
    b = b0 + tl.arange(0, BB)
    n = n0 + tl.arange(0, BN)
    where = (((b.to(tl.int64) * H + y) * W + x) * C)[:, None] + n[None, :]
    there = (b < B)[:, None] & (n < C)[None, :]
    gradient = sums.to(out.dtype.element_ty)
    if RELU:
        active = tl.load(relu_of + where, mask=there, other=0.0) > 0.0
        gradient = tl.where(active, gradient, 0.0)
    tl.store(out + where, gradient, mask=there)
