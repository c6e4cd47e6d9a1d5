"""Vector capsules: the encoder, primary capsules and routed capsules of the paper's network."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.names import ScaleOver
from gammacaps.ops import Routed, route, rule_named, squash
from gammacaps.ops.convolution import convolve
from gammacaps.ops.routing.backend import Settings
from gammacaps.ops.routing.choice import why_not_triton

PAPER_STD = 0.1  # of the routing weights at the start


class Convolution(nn.Conv2d):
    """A valid convolution with a square kernel, its weight channels-last, through `ops.convolution`."""

    def __init__(self, channels: int, filters: int, kernel: int, stride: int = 1) -> None:
        super().__init__(channels, filters, kernel, stride)
        self.weight.data = self.weight.data.contiguous(memory_format=torch.channels_last)

    def forward(self, input: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K Ho Wo"]:
        assert self.bias is not None
        return convolve(input, self.weight, self.bias, self.stride[0])

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """The size of the output for an input of this size."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        if min(height, width) < kernel:
            raise InputError(
                f"An image of {height}x{width} is smaller than a {kernel}x{kernel} kernel where it meets one: "
                "use larger images or a smaller kernel."
            )
        return (height - kernel) // stride + 1, (width - kernel) // stride + 1


def wide(tensor: Tensor) -> Tensor:
    """At least float32: capsules are not computed in half precision, though the encoder may be."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


class PrimaryCapsules(nn.Module):
    """A convolution whose channels are the entries of `types` capsules at each place of its grid.

    Capsule i stands for (row, column, type), the type running fastest; its d entries are neighbours among the
    channels, so the channels go last before the reshape.
    """

    def __init__(self, channels: int, types: int, size: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.size = size
        self.convolution = Convolution(channels, types * size, kernel, stride)

    def start_long(self, mean_square: float) -> None:
        """Weights from which capsules are about 2 long before the squash, 0.8 after it.

        `mean_square` is the features' mean square at the start of training.
        """
        weight, bias = self.convolution.weight, self.convolution.bias
        nn.init.normal_(weight, std=2 / math.sqrt(weight[0].numel() * mean_square * self.size))
        assert bias is not None
        nn.init.zeros_(bias)

    def forward(self, features: Float[Tensor, "B C H W"]) -> Float[Tensor, "B I d"]:
        entries = wide(self.convolution(features)).permute(0, 2, 3, 1)  # B rows columns types*d
        return squash(entries.flatten(1).unflatten(1, (-1, self.size)))


class RoutedCapsules(nn.Module):
    """Upper capsules that lower capsules vote for: a thin layer over `ops.route`."""

    def __init__(
        self,
        lower: int,
        upper: int,
        lower_size: int,
        upper_size: int,
        *,
        rule: str = "sda",
        iterations: int = 3,
        scale_over: ScaleOver = "capsule",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.rule = rule_named(rule).name
        self.iterations = iterations
        self.scale_over: ScaleOver = scale_over
        # I J d D, in memory I d J D: one capsule's votes for all parents are then one matrix product.
        self.weight = nn.Parameter(torch.empty(lower, lower_size, upper, upper_size).transpose(1, 2))
        self.start(PAPER_STD)
        self.bias = nn.Parameter(torch.full((upper, upper_size), 0.1)) if bias else None  # J D

    def start(self, std: float) -> None:
        """Random weights, a normal distribution of this deviation cut at twice of it."""
        nn.init.trunc_normal_(self.weight, std=std, a=-2 * std, b=2 * std)

    def start_long(self) -> None:
        """Weights from which votes are about as long as the capsules that cast them.

        They are shorter where there are so many lower capsules that the mean of their votes would still be longer.
        """
        I, J, _, D = self.weight.shape
        self.start(min(1, J / math.sqrt(I)) / math.sqrt(D))

    def start_between(self) -> None:
        """Weights from which upper capsules are neither always long nor silent, where those below are long.

        SDA soon leaves each upper capsule with its I/J of the lower ones, whose votes agree and add up; there are so
        many that votes must be shorter. Votes that do not agree add up to less, and stay as they are.
        """
        I, J, _, D = self.weight.shape
        if self.rule == "sda":
            self.start(min(1, 5 * J / I) / math.sqrt(D))
        else:
            self.start_long()

    def settings(self) -> Settings:
        """How it routes, as the backends of `route` take it."""
        return Settings(rule_named(self.rule), self.iterations, self.scale_over)

    def forward(self, poses: Float[Tensor, "B I d"], couplings: bool = False) -> Routed:
        return route(
            poses,
            self.weight,
            self.bias,
            rule=self.rule,
            iterations=self.iterations,
            scale_over=self.scale_over,
            couplings=couplings,
        )


def why_no_kernels(network: nn.Module) -> str | None:
    """Why the Triton kernels can't route the capsules of a network where it lies; None where they can."""
    for layer in network.modules():
        if isinstance(layer, RoutedCapsules):
            reason = why_not_triton(layer.settings(), layer.weight.dtype, layer.weight)
            if reason is not None:
                return reason
    return None
