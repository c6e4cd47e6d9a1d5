"""The convolutional network of Madry et al. (2018) for MNIST: the baseline without capsules.

With the deep stem it has the very encoder of the preset `deep` instead, so that the two differ in their capsules alone.
"""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.models.checks import check_counts, check_input, rescaled
from gammacaps.models.protocol import Model
from gammacaps.names import StemName
from gammacaps.nn import DeepEncoder

MADRY = (32, 64)


@dataclass(frozen=True)
class CNNConfig:
    """The shape of a `CNN`; the defaults are Madry's."""

    image_shape: tuple[int, int, int] = (1, 28, 28)
    classes: int = 10
    filters: tuple[int, int] = MADRY  # of Madry's two convolutions
    width: int = 1024
    stem: StemName = "madry"
    deep_filters: int = 64  # of the deep stem's first stage
    input_scale: int = 1  # the network is given (image - 0.5) times this; 1: the image itself


class CNN(Model):
    """Convolutions, each or each two followed by 2x2 max-pooling, and two fully connected layers; gives logits."""

    architecture, title = "cnn", "convolutional network"

    def __init__(self, config: CNNConfig) -> None:
        super().__init__()
        check_counts(config)
        self.config = config
        self.image_shape, self.classes = config.image_shape, config.classes
        stem, features = _stem(config)
        self.encoding = len(stem) + 1  # layers, up to the one that makes rows of images
        self.layers = nn.Sequential(
            *stem,
            nn.Flatten(),
            nn.Linear(features, config.width),
            nn.ReLU(),
            nn.Linear(config.width, config.classes),
        )

    def forward(self, images: Tensor) -> Float[Tensor, "B N"]:
        check_input(images, self.config.image_shape)
        return self.layers[self.encoding :](self.encode(images))

    def encode(self, images: Tensor) -> Float[Tensor, "B F"]:
        """What the convolutions give, as one row an image."""
        return self.layers[: self.encoding](rescaled(images, self.config.input_scale))


def _stem(config: CNNConfig) -> tuple[list[nn.Module], int]:
    """The layers before the fully connected ones, and how many features they give."""
    channels, height, width = config.image_shape
    if config.stem == "deep":
        if config.filters != MADRY:
            raise InputError("filters is for Madry's stem: with the deep one give deep_filters.")
        encoder = DeepEncoder(channels, config.deep_filters, (height, width))
        return [encoder], encoder.channels * math.prod(encoder.grid)
    if config.deep_filters != CNNConfig.deep_filters:
        raise InputError("deep_filters is for the deep stem: leave it out, or give stem=deep.")
    first, second = config.filters
    layers = [
        nn.Conv2d(channels, first, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.Conv2d(first, second, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2, ceil_mode=True),
    ]
    return layers, second * -(-height // 4) * -(-width // 4)
