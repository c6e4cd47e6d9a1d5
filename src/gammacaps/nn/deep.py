"""A deep encoder: small padded convolutions and pooling, until the image is a small grid."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.names import ActivationName
from gammacaps.nn.grid import LARGEST_GRID, WIDEST
from gammacaps.ops.choice import fused_pooling
from gammacaps.ops.convolution import convolve

# With fewer channels than this a CPU is faster by `ops.convolution`, whose output is channels-last as the next layer's.
NARROW = 4
ACTIVATIONS: dict[ActivationName, type[nn.Module]] = {"relu": nn.ReLU, "silu": nn.SiLU}


class PaddedConvolution(nn.Conv2d):
    """A convolution that keeps the image's size, its weight channels-last, with Kaiming's start for a ReLU."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel, padding=kernel // 2)
        self.weight.data = self.weight.data.contiguous(memory_format=torch.channels_last)
        nn.init.normal_(self.weight, std=math.sqrt(2 / self.weight[0].numel()))
        assert self.bias is not None
        nn.init.zeros_(self.bias)

    def forward(self, input: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K H W"]:
        assert self.bias is not None
        if self.in_channels >= NARROW or input.device.type != "cpu":
            return super().forward(input)
        border = [self.kernel_size[0] // 2] * 4
        return convolve(nn.functional.pad(input, border), self.weight, self.bias)


class DeepEncoder(nn.Sequential):
    """Stages of `depth` padded convolutions, each with its activation, and 2x2 max-pooling.

    Pooling halves the image, and there are as many stages as it takes until no side is longer than 8, at least one.
    `channels` and `grid` (rows, columns) tell what comes out.
    """

    def __init__(
        self,
        channels: int,
        filters: int,
        size: tuple[int, int],
        *,
        kernel: int = 3,
        depth: int = 2,
        activation: ActivationName = "relu",
    ) -> None:
        if kernel % 2 == 0:
            raise InputError(f"The deep encoder's kernel must be odd, so that images keep their size, not {kernel}.")
        layers: list[nn.Module] = []
        before, after, (rows, columns) = channels, filters, size
        while not layers or max(rows, columns) > LARGEST_GRID:
            for _ in range(depth):
                layers += [PaddedConvolution(before, after, kernel), ACTIVATIONS[activation]()]
                before = after
            layers.append(nn.MaxPool2d(2, ceil_mode=True))
            after, rows, columns = min(2 * after, WIDEST * filters), (rows + 1) // 2, (columns + 1) // 2
        super().__init__(*layers)
        self.channels, self.grid = before, (rows, columns)
        self.fuses = activation == "relu"

    def forward(self, input: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K h w"]:
        """By kernels that take bias, ReLU and pooling together, where they can be used."""
        if not self.fuses or not fused_pooling(input) or any(part._forward_hooks for part in self):
            features: Tensor = super().forward(input)
            return features
        from gammacaps.ops.kernels.pooling import bias_relu_pool

        parts = list(self)
        for part, after in zip(parts, (*parts[2:], None, None), strict=True):
            if isinstance(part, PaddedConvolution):  # its activation follows, and then pooling or the next
                assert part.bias is not None
                padding = part.kernel_size[0] // 2
                product = nn.functional.conv2d(input, part.weight, None, padding=padding)
                input = bias_relu_pool(product, part.bias, isinstance(after, nn.MaxPool2d))
        return input
