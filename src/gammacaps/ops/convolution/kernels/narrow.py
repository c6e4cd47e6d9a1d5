"""Convolutions of few or odd channels, as products with patches.

Forward the patches are gathered inside the kernel. Backward each place's share of each pixel is written out once, and
each pixel then adds up its own shares.
"""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from gammacaps.ops.convolution.kernels.weights import LINE, Arranged, precision


class Blocks(NamedTuple):
    """The shape of the tiles: `down` rows by `across` columns of the product, `depth` summed at once."""

    down: int
    across: int
    depth: int
    stages: int
    warps: int


# ------------------------------------------------------------------------------------- forward


def forward_blocks(arranged: Arranged) -> Blocks:
    """Small tiles, many at once on an SM: reading patches and writing results then overlap."""
    across = min(256, max(16, triton.next_power_of_2(arranged.filters)))
    # Triton 3.6 splits a half precision depth over 16 and, for float32 images, does not wait for the last part before
    # it reuses that part's registers.
    half = arranged.forward.element_size() == 2
    return Blocks(64, across, 16, 3 if half else 2, 4 if half or across < 256 else 8)


def forward(
    images: Tensor,
    arranged: Arranged,
    bias: Tensor,
    stride: int,
    relu: bool,
    out: Tensor,
    blocks: Blocks | None = None,
) -> None:
    """Patches, gathered as they are needed, times filters; then ReLU where asked."""
    B, height, width, K = out.shape
    blocks = blocks or forward_blocks(arranged)
    places = B * height * width
    narrow_kernel[(triton.cdiv(places, blocks.down), triton.cdiv(K, blocks.across))](
        images.contiguous(),
        arranged.forward,
        bias,
        out,
        places,
        H=images.shape[1],
        W=images.shape[2],
        C=arranged.channels,
        Ho=height,
        Wo=width,
        K=K,
        k=arranged.kernel,
        s=stride,
        PITCH=arranged.forward.shape[1],
        BM=blocks.down,
        BN=blocks.across,
        BK=blocks.depth,
        RELU=relu,
        PRECISION=precision(arranged.forward.dtype),
        num_warps=blocks.warps,
        num_stages=blocks.stages,
    )


@triton.jit
@no_type_check
def narrow_kernel(
    images,  # [B, H, W, C]
    weight,  # [K, PITCH]
    bias,
    out,  # [places, K]
    places,
    H: tl.constexpr,
    W: tl.constexpr,
    C: tl.constexpr,
    Ho: tl.constexpr,
    Wo: tl.constexpr,
    K: tl.constexpr,
    k: tl.constexpr,
    s: tl.constexpr,
    PITCH: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    RELU: tl.constexpr,
    PRECISION: tl.constexpr,
):
    place = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    b = (place // (Ho * Wo)).to(tl.int64)
    corner = (b * H + place // Wo % Ho * s) * (W * C) + place % Wo * (s * C)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k * k * C, BK):
        entry = start + tl.arange(0, BK)
        # One row of a patch is k C neighbours in memory.
        pixel = corner[:, None] + (entry // (k * C) * (W * C) + entry % (k * C))[None, :]
        there = (place < places)[:, None] & (entry < k * k * C)[None, :]
        patches = tl.load(images + pixel, mask=there, other=0.0).to(weight.dtype.element_ty)
        filters = tl.load(weight + n[:, None] * PITCH + entry[None, :], mask=(n < K)[:, None], other=0.0)
        sums = tl.dot(patches, filters.T, sums, input_precision=PRECISION)
    sums += tl.load(bias + n, mask=n < K, other=0.0).to(tl.float32)[None, :]
    if RELU:
        sums = tl.where(sums < 0.0, 0.0, sums)  # keeps NaN
    where = place.to(tl.int64)[:, None] * K + n[None, :]
    tl.store(out + where, sums.to(out.dtype.element_ty), mask=(place < places)[:, None] & (n < K)[None, :])


# ------------------------------------------------------------------------------------- input gradient


def gradient_blocks(arranged: Arranged) -> Blocks:
    """Rows are channels and taps, columns are places."""
    down = min(128, max(16, triton.next_power_of_2(len(arranged.backward))))
    return Blocks(down, 128, LINE // arranged.backward.element_size(), 3, 8 if down > 64 else 4)


def input_gradient(
    grad: Tensor, arranged: Arranged, stride: int, relu_of: Tensor | None, out: Tensor, blocks: Blocks | None = None
) -> None:
    """Each place's share of each pixel under it, and then each pixel's sum of its shares."""
    weight, K, C, k = arranged.backward, arranged.filters, arranged.channels, arranged.kernel
    B, height, width, _ = grad.shape
    _, H, W, _ = out.shape
    blocks = blocks or gradient_blocks(arranged)
    places = B * height * width
    # Places run fastest, so that neighbouring pixels find their shares side by side.
    shares = torch.empty(C * k * k, places, dtype=torch.float32, device=grad.device)
    shares_kernel[(triton.cdiv(places, blocks.across), triton.cdiv(len(weight), blocks.down))](
        weight,
        grad,
        shares,
        len(weight),
        places,
        K=K,
        PITCH=weight.shape[1],
        BM=blocks.down,
        BN=blocks.across,
        BK=blocks.depth,
        PRECISION=precision(weight.dtype),
        num_warps=blocks.warps,
        num_stages=blocks.stages,
    )
    overlap_add_kernel[(triton.cdiv(out.numel(), 128),)](
        shares,
        out if relu_of is None else relu_of.contiguous(),
        out,
        out.numel(),
        places,
        H=H,
        W=W,
        C=C,
        Ho=height,
        Wo=width,
        k=k,
        s=stride,
        BLOCK=128,
        RELU=relu_of is not None,
        num_warps=4,
    )


@triton.jit
@no_type_check
def shares_kernel(
    weight,  # [C k k, PITCH]
    grad,  # [places, K]
    shares,  # [C k k, places]
    rows,
    places,
    K: tl.constexpr,
    PITCH: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """What each place gives to the pixel under each tap: weight times grad, transposed."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    place = tl.program_id(0) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        filter = start + tl.arange(0, BK)
        taps = tl.load(weight + m[:, None] * PITCH + filter[None, :], mask=(m < rows)[:, None], other=0.0)
        there = (place < places)[:, None] & (filter < K)[None, :]
        gradients = tl.load(grad + place.to(tl.int64)[:, None] * K + filter[None, :], mask=there, other=0.0)
        sums = tl.dot(taps, gradients.T, sums, input_precision=PRECISION)
    where = m.to(tl.int64)[:, None] * places + place[None, :]
    tl.store(shares + where, sums, mask=(m < rows)[:, None] & (place < places)[None, :])


@triton.jit
@no_type_check
def overlap_add_kernel(
    shares,  # [C k k, places]
    relu_of,
    out,  # [B, H, W, C]
    numbers,
    places,
    H: tl.constexpr,
    W: tl.constexpr,
    C: tl.constexpr,
    Ho: tl.constexpr,
    Wo: tl.constexpr,
    k: tl.constexpr,
    s: tl.constexpr,
    BLOCK: tl.constexpr,
    RELU: tl.constexpr,
):
    """Each pixel adds up what the places around it give to it."""
    number = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    c = number % C
    x = (number // C % W).to(tl.int32)
    y = (number // (C * W) % H).to(tl.int32)
    b = number // (C * W * H)
    total = tl.zeros((BLOCK,), tl.float32)
    for ky in range(k):
        down = y - ky
        row = (b * Ho + down // s) * Wo
        valid = (number < numbers) & (down >= 0) & (down % s == 0) & (down // s < Ho)
        for kx in tl.static_range(k):
            across = x - kx
            there = valid & (across >= 0) & (across % s == 0) & (across // s < Wo)
            share = (c * (k * k) + ky * k + kx) * places + row + across // s
            total += tl.load(shares + share, mask=there, other=0.0)
    if RELU:
        total = tl.where(tl.load(relu_of + number, mask=number < numbers, other=0.0) > 0.0, total, 0.0)
    tl.store(out + number, total.to(out.dtype.element_ty), mask=number < numbers)
