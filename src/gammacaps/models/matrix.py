"""Matrix capsules with EM routing, in the shape the paper compares with (Gritzman, 2019)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.models.checks import check_counts, check_input
from gammacaps.models.parse import Parse
from gammacaps.nn import MatrixCapsules, MatrixPrimary
from gammacaps.nn.matrix import MatrixLayer


@dataclass(frozen=True)
class MatrixCapsConfig:
    """The shape of a `MatrixCapsNet`; the defaults are A=64, B=8, C=D=16 of Gritzman's work."""

    image_shape: tuple[int, int, int] = (1, 28, 28)
    classes: int = 10
    filters: int = 64
    primary_types: int = 8
    types: tuple[int, int] = (16, 16)
    iterations: int = 3


class MatrixCapsNet(nn.Module):
    """5x5 stride-2 convolution, 1x1 primary capsules, 3x3 stride-2 and 3x3 capsule layers, class capsules."""

    architecture: ClassVar = "matrix"
    loss: ClassVar = "spread"

    def __init__(self, config: MatrixCapsConfig) -> None:
        super().__init__()
        check_counts(config)
        self.config = config
        channels, height, width = config.image_shape
        self.encoder = nn.Sequential(nn.Conv2d(channels, config.filters, 5, stride=2, padding=2), nn.ReLU())
        self.primary = MatrixPrimary(config.filters, config.primary_types)
        first, second = config.types
        r = config.iterations
        below = MatrixCapsules(
            ((height + 1) // 2, (width + 1) // 2),
            config.primary_types,
            first,
            kernel=3,
            stride=2,
            iterations=r,
        )
        above = MatrixCapsules(below.grid, first, second, kernel=3, iterations=r)
        top = MatrixCapsules(above.grid, second, config.classes, kernel=None, iterations=r)
        self.routed = nn.ModuleList((below, above, top))
        self.layers = ("primary", "hidden 1", "hidden 2", "class")

    def forward(self, images: Tensor) -> Float[Tensor, "B N"]:
        return self.parse(images, couplings=False).scores

    def encode(self, images: Tensor) -> MatrixLayer:
        """The primary capsules."""
        return self.primary(self.encoder(images))

    def parse(self, images: Tensor, *, couplings: bool = True) -> Parse:
        """Poses (16 entries each), activations, couplings and scores of all layers."""
        check_input(images, self.config.image_shape)
        layers, parents = [self.encode(images)], []
        for routed in self.routed:
            assert isinstance(routed, MatrixCapsules)
            layers.append(routed(layers[-1], couplings))
            parents.append(routed.parents)
        return Parse(
            self.layers,
            tuple(layer.poses for layer in layers),
            tuple(layer.activations for layer in layers),
            tuple(layer.couplings for layer in layers[1:]),
            tuple(parents),
            layers[-1].activations,
        )
