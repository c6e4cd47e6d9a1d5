"""Bias, ReLU and pooling in one kernel against torch's own: interpreted where there is no GPU, compiled with one."""

import os

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before triton is imported

import pytest
from torch.nn.functional import max_pool2d

import gammacaps

pytest.importorskip("triton")
from gammacaps.nn import deep
from gammacaps.ops.kernels.pooling import bias_relu_pool

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("size", [(2, 3, 4, 6), (1, 5, 7, 5), (3, 1, 1, 1), (1, 20, 2, 3)], ids=str)
@pytest.mark.parametrize("pool", [False, True])
def test_values_and_gradients_are_torch_s(size, pool):
    torch.manual_seed(0)
    x, bias = torch.randn(size, device=DEVICE).requires_grad_(), torch.randn(size[1], device=DEVICE).requires_grad_()
    y = bias_relu_pool(x, bias, pool)
    right = torch.relu(x + bias.view(-1, 1, 1))
    right = max_pool2d(right, 2, ceil_mode=True) if pool else right
    torch.testing.assert_close(y, right)
    grad = torch.randn_like(right)
    for ours, own in zip(
        torch.autograd.grad(y, (x, bias), grad), torch.autograd.grad(right, (x, bias), grad), strict=True
    ):
        torch.testing.assert_close(ours, own)


def test_equal_pixels_and_what_is_no_number():
    x = torch.zeros(1, 1, 2, 4, device=DEVICE)
    x[0, 0, 0, :2], x[0, 0, 1, 2] = 1.0, torch.nan
    x.requires_grad_()
    y = bias_relu_pool(x, torch.zeros(1, device=DEVICE), True)
    assert y[0, 0, 0, 0] == 1
    assert y[0, 0, 0, 1].isnan()
    (grad,) = torch.autograd.grad(y[0, 0, 0, 0], x)
    assert grad.flatten().tolist() == [1.0, *[0.0] * 7]  # of equal ones the first


@pytest.mark.slow
def test_the_deep_encoder_gives_the_same_with_them(monkeypatch):
    torch.manual_seed(0)
    encoder = gammacaps.create("deep", filters=3, primary_types=2, hidden=(3,), decoder=()).encoder.to(DEVICE)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    for weight in encoder.parameters():
        weight.data.add_(0.05 * torch.randn_like(weight))
    images = torch.rand(2, 1, 28, 28, device=DEVICE).requires_grad_()
    given = []
    for fused in (False, True):
        monkeypatch.setattr(deep, "fused_pooling", lambda _, fused=fused: fused)
        features = encoder(images)
        given.append((features, *torch.autograd.grad(features.square().sum(), (images, *encoder.parameters()))))
    for ours, own in zip(*given, strict=True):
        torch.testing.assert_close(ours, own, rtol=1e-3, atol=1e-4)
