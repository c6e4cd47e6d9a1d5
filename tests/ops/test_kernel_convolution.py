"""The Triton convolutions against float64: interpreted where there is no GPU, compiled where there is one."""

import os

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before triton is imported

import pytest
from torch.nn.functional import conv2d

from gammacaps.ops import squash

pytest.importorskip("triton")
from gammacaps.ops.convolution import kernels
from gammacaps.ops.convolution.kernels import wide

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# (B, H, W, C, K, k, stride): which kernels run is said first, forward / gradient.
SIZES = [
    (2, 3, 5, 5, 7, 3, 2),  # narrow / narrow: nothing fills a block, unequal sides
    (1, 10, 11, 1, 20, 9, 1),  # narrow / narrow: one channel and a large kernel, as at an image
    (1, 6, 6, 3, 40, 5, 3),  # narrow / narrow: the last pixels are in no patch, so their gradient is zero
    (1, 5, 5, 1, 3, 5, 2),  # narrow / narrow: a single place
    (3, 5, 5, 64, 64, 3, 2),  # wide / wide: fewer samples than a tile has, pixels with one, two and four taps
    (1, 3, 4, 64, 40, 2, 1),  # wide / narrow: a single sample, filters that fill no block
    (5, 2, 3, 24, 128, 2, 1),  # narrow / wide: two blocks of filters to sum, few channels
    (130, 1, 3, 64, 64, 1, 1),  # wide / wide: more samples than the largest tile has
    (1, 1, 1, 64, 320, 1, 1),  # wide / wide: more filters than a tile has
    (2, 2, 4, 64, 64, 1, 3),  # wide / wide: most pixels are under no tap
]
# Triton's interpreter multiplies the bit patterns of bfloat16, so without a GPU the other half precision stands for it.
HALF = torch.bfloat16 if torch.cuda.is_available() else torch.float16
DTYPES = [HALF, torch.float32]


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch):
    """Fresh memory is NaN, so that a number nobody wrote is seen."""
    empty, empty_like = torch.empty, torch.empty_like

    def poison(tensor):
        return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor

    monkeypatch.setattr(torch, "empty", lambda *size, **options: poison(empty(*size, **options)))
    monkeypatch.setattr(torch, "empty_like", lambda *tensor, **options: poison(empty_like(*tensor, **options)))


@pytest.fixture(autouse=True)
def _full_float32():
    """The library's float32 is the yardstick, so it must not be tf32."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def layer(B, H, W, C, K, k):
    """Images, weight and bias, of about unit output."""
    images = torch.randn(B, H, W, C, device=DEVICE)
    return images, torch.randn(K, C, k, k, device=DEVICE) / (k * C**0.5), torch.randn(K, device=DEVICE)


def library(images, weight, bias, stride, dtype):
    """The library's convolution of channels-last images in this precision, channels-last."""
    images, weight, bias = (tensor.to(dtype) for tensor in (images, weight, bias))
    return conv2d(images.permute(0, 3, 1, 2), weight, bias, stride).permute(0, 2, 3, 1)


def assert_as_close(ours, theirs, exact):
    """At most twice the library's error, which counts as at least float32's rounding."""
    assert ours.shape == exact.shape
    assert not ours.isnan().any()
    error, allowed = (torch.linalg.vector_norm(out.double() - exact) for out in (ours, theirs))
    assert error <= 2 * max(allowed, torch.finfo(torch.float32).eps * torch.linalg.vector_norm(exact))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("B", "H", "W", "C", "K", "k", "stride"), SIZES)
def test_forward_is_as_close_to_float64_as_the_library(B, H, W, C, K, k, stride, dtype):
    images, weight, bias = layer(B, H, W, C, K, k)
    relu = K % 2 == 0
    exact, theirs = (library(images, weight, bias, stride, type) for type in (torch.float64, dtype))
    if relu:
        exact, theirs = exact.relu(), theirs.relu()
    ours = kernels.forward(images.to(dtype), kernels.arrange(weight, dtype), bias, stride, relu, dtype)
    assert ours.dtype == dtype
    assert_as_close(ours, theirs, exact)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("B", "H", "W", "C", "K", "k", "stride"), SIZES)
def test_input_gradient_is_as_close_to_float64_as_the_library(B, H, W, C, K, k, stride, dtype):
    images, weight, bias = layer(B, H, W, C, K, k)
    images = images.relu().requires_grad_()
    out = library(images, weight, bias, stride, torch.float64)
    grad = torch.randn(out.shape, device=DEVICE)
    exact = torch.autograd.grad(out, images, grad.double())[0].double()
    low = images.detach().to(dtype).requires_grad_()
    theirs = torch.autograd.grad(library(low, weight, bias, stride, dtype), low, grad.to(dtype))[0]
    arranged = kernels.arrange(weight, dtype)
    ours = kernels.input_gradient(grad.to(dtype), arranged, stride, (H, W))
    assert ours.dtype == dtype
    assert_as_close(ours, theirs, exact)
    if dtype == HALF:  # past a ReLU, and into another type: once is enough
        active = images > 0
        ours = kernels.input_gradient(grad.to(dtype), arranged, stride, (H, W), low.detach(), torch.float32)
        assert ours.dtype == torch.float32
        assert_as_close(ours, theirs * active, exact * active)


# Narrow and wide; groups that are a power of two, which the wide kernel squashes itself, and others.
@pytest.mark.parametrize("size", [8, 5])
@pytest.mark.parametrize(("C", "K"), [(3, 40), (64, 40)])
def test_squash_is_the_reference_s(C, K, size):
    images, weight, bias = layer(3, 3, 5, C, K, 3)
    s, v = kernels.forward_squash(images, kernels.arrange(weight, torch.float32), bias, 2, size)
    exact, theirs = (library(images, weight, bias, 2, dtype) for dtype in (torch.float64, torch.float32))
    assert_as_close(s, theirs, exact)
    exact, theirs = (squash(out.unflatten(-1, (-1, size))).flatten(-2) for out in (exact, theirs))
    assert_as_close(v, theirs, exact)


def test_float32_images_of_a_layer_in_half_precision():
    images, weight, bias = layer(2, 9, 9, 1, 16, 5)
    arranged = kernels.arrange(weight, HALF)
    ours = kernels.forward(images, arranged, bias, 1, False, torch.float32)
    exact, theirs = (library(images, weight, bias, 1, dtype) for dtype in (torch.float64, HALF))
    assert_as_close(ours, theirs, exact)


def test_nan_is_not_hidden_by_relu():
    images, weight, bias = layer(1, 5, 5, 1, 4, 3)
    images[0, 0, 0, 0] = float("nan")
    out = kernels.forward(images, kernels.arrange(weight, torch.float32), bias, 1, True, torch.float32)
    assert out[0, 0, 0].isnan().all()
    assert not out[0, 1:].isnan().any()


def test_a_new_weight_is_arranged_in_the_memory_of_the_old():
    old, new = (layer(1, 5, 5, 3, 7, 3)[1] for _ in range(2))
    arranged = kernels.arrange(old, torch.bfloat16)
    again = kernels.arrange(new, torch.bfloat16, out=arranged)
    assert again is arranged
    fresh = kernels.arrange(new, torch.bfloat16)
    assert torch.equal(again.forward, fresh.forward)
    assert torch.equal(again.backward, fresh.backward)
    with pytest.raises(ValueError, match="leave it out"):
        kernels.arrange(new, torch.float32, out=arranged)


@pytest.mark.parametrize(("B", "samples"), [(128, 128), (65, 128), (64, 64)])
def test_tiles_of_the_paper_s_network(B, samples):
    tiles = wide.tiles_for(torch.bfloat16, B, 256)
    assert tiles == (samples, 256, 4, samples // 16)
    # Of the 81 taps of 36 places each pixel walks over its own only.
    order = wide.pixel_order(20, 20, 6, 6, 9, 2, torch.device("cpu"))
    steps = [wide.taps(y, 9, 2, 6) * wide.taps(x, 9, 2, 6) for y, x in order.tolist()]
    assert sum(steps) == 81 * 36
    assert steps == sorted(steps, reverse=True)
    assert len({*map(tuple, order.tolist())}) == 400
