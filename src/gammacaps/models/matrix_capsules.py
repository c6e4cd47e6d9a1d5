"""Matrix capsules with EM routing, in the shape the paper compares with (Gritzman, 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gammacaps.models.checks import check_counts, check_input, rescaled
from gammacaps.models.parse import Parse
from gammacaps.models.routed import RoutedNetwork
from gammacaps.nn import MatrixCapsules, MatrixPrimary, layers_of
from gammacaps.nn.matrix import MatrixLayer
from gammacaps.ops.em.route import vote_and_route


@dataclass(frozen=True)
class MatrixCapsConfig:
    """The shape of a `MatrixCapsNet`; the defaults are A=64, B=8, C=D=16 of Gritzman's work."""

    image_shape: tuple[int, int, int] = (1, 28, 28)
    classes: int = 10
    filters: int = 64
    primary_types: int = 8
    types: tuple[int, int] = (16, 16)
    iterations: int = 3
    input_scale: int = 1  # the network is given (image - 0.5) times this; 1: the image itself


class MatrixCapsNet(RoutedNetwork):
    """5x5 stride-2 convolution, 1x1 primary capsules, 3x3 stride-2 and 3x3 capsule layers, class capsules."""

    architecture, title, loss, routing = "matrix", "matrix-capsule network", "spread", "em"
    config: MatrixCapsConfig
    primary: MatrixPrimary

    def __init__(self, config: MatrixCapsConfig) -> None:
        super().__init__()
        check_counts(config)
        self.config = config
        self.image_shape, self.classes, self.iterations = config.image_shape, config.classes, config.iterations
        channels, height, width = config.image_shape
        self.encoder = nn.Sequential(nn.Conv2d(channels, config.filters, 5, stride=2, padding=2), nn.ReLU())
        self.primary = MatrixPrimary(config.filters, config.primary_types)
        first, second = config.types
        r = config.iterations
        primary_grid = ((height + 1) // 2, (width + 1) // 2)
        below = MatrixCapsules(
            primary_grid,
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
        self._grids = (primary_grid, below.grid, above.grid, top.grid)

    @property
    def routing_title(self) -> str:
        return "expectation maximisation"

    @property
    def grids(self) -> tuple[tuple[int, int], ...]:
        return self._grids

    def compile_routing(self, backend: str = "inductor") -> bool:
        """Compiles EM routing where the kernels for it can't be used.

        Only the function is compiled, its weights being arguments: compiled as a module, some versions of torch keep
        the graph made while an attack had the weights frozen, and the weights then silently stop learning.
        """
        layers = layers_of(self, MatrixCapsules)
        if all(layer.has_kernels for layer in layers):
            return False
        compiled = torch.compile(vote_and_route, backend=backend)
        for layer in layers:
            layer.vote_and_route = compiled
        return True

    def encode(self, images: Tensor) -> MatrixLayer:
        """The primary capsules."""
        return self.primary(self.encoder(rescaled(images, self.config.input_scale)))

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
