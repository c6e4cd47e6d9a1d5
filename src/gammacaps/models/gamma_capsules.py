"""The paper's network: an encoder, primary capsules, hidden routed capsules, class capsules, a decoder."""

import math
from dataclasses import dataclass
from typing import TypeGuard

from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.models.checks import check_counts, check_input, rescaled
from gammacaps.models.parse import Parse
from gammacaps.models.protocol import require_decoder
from gammacaps.models.routed import RoutedNetwork
from gammacaps.names import ActivationName, EncoderName, ScaleOver
from gammacaps.nn import Convolution, Decoder, DeepEncoder, PrimaryCapsules, ResidualEncoder, RoutedCapsules, layers_of
from gammacaps.nn.vector import PAPER_STD
from gammacaps.ops import length

# Less of a primary capsule than this reaches a class capsule at the start: the network would stay at chance for long.
FAINT = 0.01
# Mean squares of the encoders' features at the start: of pixels through a ReLU; normalised; and of the deep encoder, by
# its activation, as measured on photos and drawings (0.1 to 1.5, and 0.02 to 0.14).
SHALLOW, NORMALISED = 0.05, 0.5
DEEP: dict[ActivationName, float] = {"relu": 0.3, "silu": 0.05}


@dataclass(frozen=True)
class GammaCapsConfig:
    """The shape of a `GammaCapsNet`; the defaults are the paper's."""

    image_shape: tuple[int, int, int] = (1, 28, 28)
    classes: int = 10
    encoder: EncoderName = "convolution"
    filters: int = 256
    kernel: int = 9
    stride: int = 1
    primary_types: int = 32
    primary_size: int = 8
    primary_kernel: int = 9
    primary_stride: int = 2
    hidden: tuple[int, ...] = (32,)  # capsules in each hidden routed layer
    hidden_size: int = 8
    class_size: int = 16
    routing: str = "sda"
    iterations: int = 3
    scale_over: ScaleOver = "capsule"
    routing_bias: bool = True
    decoder: tuple[int, ...] = (512, 1024)  # widths of its layers; () for no decoder
    input_scale: int = 1  # the network is given (image - 0.5) times this; 1: the image itself
    # Of the deep encoder alone, which has no stride:
    depth: int = 2  # convolutions in a stage
    activation: ActivationName = "relu"


class GammaCapsNet(RoutedNetwork):
    """`model(images)` gives the lengths of the class capsules, `model.parse(images)` all capsules and couplings."""

    architecture = "gamma"
    neighbours_option = ("scale_over='batch'", "scale_over='capsule'")
    no_decoder = "This network has no decoder: create it with decoder=(512, 1024)."
    config: GammaCapsConfig
    primary: PrimaryCapsules

    def __init__(self, config: GammaCapsConfig) -> None:
        super().__init__()
        check_counts(config)
        self.config = config
        self.image_shape, self.classes = config.image_shape, config.classes
        self.routing, self.iterations = config.routing, config.iterations
        self.depends_on_neighbours, self.reconstructs = config.scale_over == "batch", bool(config.decoder)
        self.encoder, filters, grid = _encoder(config)
        self.primary = PrimaryCapsules(
            filters,
            config.primary_types,
            config.primary_size,
            config.primary_kernel,
            config.primary_stride,
        )
        # The grid of primary capsules follows from the image.
        rows, columns = self.primary.convolution.grid(*grid)
        self.primary_grid = (rows, columns)
        counts = (rows * columns * config.primary_types, *config.hidden, config.classes)
        sizes = (config.primary_size, *[config.hidden_size] * len(config.hidden), config.class_size)
        self.routed = nn.ModuleList(
            RoutedCapsules(
                counts[l],
                counts[l + 1],
                sizes[l],
                sizes[l + 1],
                rule=config.routing,
                iterations=config.iterations,
                scale_over=config.scale_over,
                bias=config.routing_bias,
            )
            for l in range(len(counts) - 1)
        )
        self._start()
        self.layers = ("primary", *(f"hidden {l + 1}" for l in range(len(config.hidden))), "class")
        self.decoder = (
            Decoder(config.classes, config.class_size, config.decoder, config.image_shape) if config.decoder else None
        )

    def _start(self) -> None:
        """Initial weights: the paper's where they carry the image to the class capsules, else longer capsules.

        After the deep encoder no hidden capsule starts always on: it would stay so, since squash is flat there.
        """
        layers = layers_of(self.routed, RoutedCapsules)
        shapes = [layer.weight.shape for layer in layers]
        reaching = math.prod(PAPER_STD * math.sqrt(I * D) / J for I, J, _, D in shapes)
        encoder = self.config.encoder
        if encoder == "deep":
            self.primary.start_long(DEEP[self.config.activation])
            for layer in layers:
                layer.start_between()
        elif reaching < FAINT or encoder == "residual":
            self.primary.start_long(NORMALISED if encoder == "residual" else SHALLOW)
            for layer in layers:
                layer.start_long()

    def encode(self, images: Tensor) -> Float[Tensor, "B I d"]:
        """The primary capsules."""
        return self.primary(self.encoder(rescaled(images, self.config.input_scale)))

    def parse(self, images: Tensor, *, couplings: bool = True) -> Parse:
        """Poses, activations, couplings and scores of all layers."""
        check_input(images, self.config.image_shape)
        poses = [self.encode(images)]
        coupled: list[Tensor | None] = []
        for layer in self.routed:
            routed = layer(poses[-1], couplings)
            poses.append(routed.poses)
            coupled.append(routed.couplings)
        activations = tuple(length(p) for p in poses)
        return Parse(self.layers, tuple(poses), activations, tuple(coupled), (None,) * len(coupled), activations[-1])

    @property
    def grids(self) -> tuple[tuple[int, int], ...]:
        return (self.primary_grid, *((1, 1),) * len(self.routed))

    def reconstruct(self, parse: Parse, labels: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B C H W"]:
        """The decoder's image from the class capsule of `labels`, or from the longest where there are none."""
        require_decoder(self)
        assert self.decoder is not None
        return self.decoder(parse.poses[-1], parse.scores.argmax(-1) if labels is None else labels)


def _encoder(config: GammaCapsConfig) -> tuple[nn.Sequential, int, tuple[int, int]]:
    """The encoder, how many channels come out of it, and on what grid."""
    channels, height, width = config.image_shape
    if config.encoder == "deep":
        if config.stride != 1:
            raise InputError(f"stride {config.stride} is not for the deep encoder, which pools: leave it out.")
        deep = DeepEncoder(
            channels,
            config.filters,
            (height, width),
            kernel=config.kernel,
            depth=config.depth,
            activation=config.activation,
        )
        return deep, deep.channels, deep.grid
    for name, value, usual in (("depth", config.depth, 2), ("activation", config.activation, "relu")):
        if value != usual:
            raise InputError(f"{name} {value} is for the deep encoder alone: leave it out, or give encoder=deep.")
    if config.encoder == "residual":
        residual = ResidualEncoder(channels, config.filters, config.kernel, config.stride, (height, width))
        return residual, residual.channels, residual.grid
    convolution = Convolution(channels, config.filters, config.kernel, config.stride)
    return nn.Sequential(convolution, nn.ReLU()), config.filters, convolution.grid(height, width)


def has_kernels(model: object) -> TypeGuard[GammaCapsNet]:
    """Whether a `FrozenNetwork` can be made of it, which gives what the network itself does.

    Kernels would pass hooks by: with them what switches capsules off.
    """
    if not isinstance(model, GammaCapsNet) or model.config.input_scale != 1:
        return False
    return not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
