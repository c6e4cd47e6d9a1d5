import pytest
import torch
from torch.nn.functional import conv2d

from gammacaps.nn import Convolution
from gammacaps.ops.convolution import convolve

# (B, C, H, W, K, kernel, stride): one channel and many, since the gradient's last step differs; odd and unequal sides.
SIZES = [(2, 1, 28, 28, 5, 9, 1), (3, 9, 11, 14, 4, 5, 2), (1, 3, 9, 9, 2, 9, 1), (2, 16, 10, 7, 3, 3, 3)]


@pytest.mark.parametrize(("B", "C", "H", "W", "K", "kernel", "stride"), SIZES)
@pytest.mark.parametrize("channels_last", [True, False])
def test_patch_convolution_is_the_library_s_with_its_gradients(B, C, H, W, K, kernel, stride, channels_last):
    images = torch.randn(B, C, H, W, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(K, C, kernel, kernel, dtype=torch.float64)
    if channels_last:
        weight = weight.contiguous(memory_format=torch.channels_last)
    weight.requires_grad_()
    bias = torch.randn(K, dtype=torch.float64, requires_grad=True)
    ours, theirs = convolve(images, weight, bias, stride), conv2d(images, weight, bias, stride)
    torch.testing.assert_close(ours, theirs)
    direction = torch.randn_like(theirs)
    tensors = (images, weight, bias)
    for mine, library in zip(
        torch.autograd.grad(ours, tensors, direction), torch.autograd.grad(theirs, tensors, direction), strict=True
    ):
        torch.testing.assert_close(mine, library)


def test_only_the_gradients_asked_for_are_computed():
    layer = Convolution(2, 3, 3)
    images = torch.randn(1, 2, 6, 6, requires_grad=True)
    layer.requires_grad_(False)
    layer(images).sum().backward()
    assert images.grad is not None
    assert layer.weight.grad is None
    assert layer.bias.grad is None


def test_the_output_s_size_is_what_grid_says():
    layer = Convolution(1, 2, 5, 3)
    assert tuple(layer(torch.rand(1, 1, 19, 24)).shape[2:]) == layer.grid(19, 24)


def test_second_derivatives_are_right():
    tensors = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((1, 2, 5, 5), (2, 2, 3, 3), (2,))]
    assert torch.autograd.gradgradcheck(lambda *t: convolve(*t, 2), tensors)
