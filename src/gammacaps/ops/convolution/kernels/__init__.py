"""Valid convolutions and their input gradients as Triton kernels, for frozen weights (attacks).

Tensors are channels-last, (B, H, W, C) in memory. There are two ways through, each for both directions:

- `wide` layers, whose channels fill whole blocks, are implicit matrix products: the rows of a tile are many samples
  at one place, and the tile walks over the kernel's taps.
- `narrow` layers (an image's one or three channels, or odd numbers of them) are products with patches.

Sums are float32 and their order is fixed: the same input gives the same output, bit for bit.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.ops.convolution.kernels import narrow, wide
from gammacaps.ops.convolution.kernels.weights import Arranged, arrange
from gammacaps.ops.vectors import squash

__all__ = ["Arranged", "arrange", "forward", "forward_squash", "input_gradient"]


def forward(
    images: Float[Tensor, "B H W C"],
    arranged: Arranged,
    bias: Float[Tensor, "K"],
    stride: int,
    relu: bool,
    out_dtype: torch.dtype,
) -> Float[Tensor, "B Ho Wo K"]:
    """conv2d(images, weight, bias, stride), then ReLU where asked, of channels-last images."""
    out = torch.empty(output_shape(images, arranged, stride), dtype=out_dtype, device=images.device)
    layer = wide if wide.fits(arranged.forward.dtype, arranged.channels) else narrow
    layer.forward(images, arranged, bias, stride, relu, out)
    return out


def forward_squash(
    images: Float[Tensor, "B H W C"],
    arranged: Arranged,
    bias: Float[Tensor, "K"],
    stride: int,
    size: int,
) -> tuple[Float[Tensor, "B Ho Wo K"], Float[Tensor, "B Ho Wo K"]]:
    """The convolution s, and v = squash(s) over groups of `size` neighbouring channels; both float32."""
    if wide.fits(arranged.forward.dtype, arranged.channels) and wide.squashes(size):
        s = torch.empty(output_shape(images, arranged, stride), dtype=torch.float32, device=images.device)
        v = torch.empty_like(s)
        wide.forward(images, arranged, bias, stride, False, s, v, size)
        return s, v
    s = forward(images, arranged, bias, stride, False, torch.float32)
    return s, squash(s.unflatten(-1, (-1, size))).flatten(-2)


def input_gradient(
    grad: Float[Tensor, "B Ho Wo K"],
    arranged: Arranged,
    stride: int,
    size: tuple[int, int],
    relu_of: Float[Tensor, "B H W C"] | None = None,
    out_dtype: torch.dtype | None = None,
) -> Float[Tensor, "B H W C"]:
    """The gradient of the convolution's input of `size` H W, and past a ReLU whose output that input is, `relu_of`.

    It is in the weight's precision where `out_dtype` names no other.
    """
    grad = grad.to(arranged.backward.dtype).contiguous()
    out = torch.empty(len(grad), *size, arranged.channels, dtype=out_dtype or grad.dtype, device=grad.device)
    # With fewer channels a tile would be mostly empty.
    layer = wide if wide.fits(grad.dtype, arranged.filters) and arranged.channels >= 16 else narrow
    layer.input_gradient(grad, arranged, stride, relu_of, out)
    return out


def output_shape(images: Tensor, arranged: Arranged, stride: int) -> tuple[int, int, int, int]:
    """B Ho Wo K."""
    B, H, W, _ = images.shape
    return B, (H - arranged.kernel) // stride + 1, (W - arranged.kernel) // stride + 1, arranged.filters
