"""A residual encoder for larger images: it ends on a small grid, whatever the image's size."""

import math

from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.nn.grid import LARGEST_GRID, WIDEST


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, the first of stride 2, each after a normalisation and a ReLU, beside a 1x1 shortcut.

    The normalisation is over groups of one image's channels: statistics of the batch would let an image's answer
    depend on its neighbours.
    """

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.before = nn.Sequential(normalisation(channels), nn.ReLU())
        self.shortcut = nn.Conv2d(channels, filters, 1, stride=2)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, filters, 3, stride=2, padding=1),
            normalisation(filters),
            nn.ReLU(),
            nn.Conv2d(filters, filters, 3, padding=1),
        )

    def forward(self, features: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K h w"]:
        features = self.before(features)
        return self.shortcut(features) + self.layers(features)


class ResidualEncoder(nn.Sequential):
    """A padded convolution, a block for each halving of its output, a normalisation and a ReLU.

    `channels` and `grid` (rows, columns) tell what comes out.
    """

    def __init__(self, channels: int, filters: int, kernel: int, stride: int, size: tuple[int, int]) -> None:
        layers: list[nn.Module] = [nn.Conv2d(channels, filters, kernel, stride, padding=kernel // 2)]
        rows, columns = ((side + 2 * (kernel // 2) - kernel) // stride + 1 for side in size)
        before = filters
        while max(rows, columns) > LARGEST_GRID:
            after = min(2 * before, WIDEST * filters)
            layers.append(ResidualBlock(before, after))
            before, rows, columns = after, (rows + 1) // 2, (columns + 1) // 2
        super().__init__(*layers, normalisation(before), nn.ReLU())
        self.channels, self.grid = before, (rows, columns)


def normalisation(channels: int) -> nn.GroupNorm:
    """Over groups of at least 4 channels of one image where there are as many."""
    return nn.GroupNorm(math.gcd(8, max(1, channels // 4)), channels)
