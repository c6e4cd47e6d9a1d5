"""The convolutional network of Madry et al. (2018) for MNIST: the baseline without capsules."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.models.checks import check_counts, check_input
from gammacaps.models.protocol import Model


@dataclass(frozen=True)
class CNNConfig:
    """The shape of a `CNN`; the defaults are Madry's."""

    image_shape: tuple[int, int, int] = (1, 28, 28)
    classes: int = 10
    filters: tuple[int, int] = (32, 64)
    width: int = 1024


ENCODER = 7  # of its layers, up to the one that makes rows of images


class CNN(Model):
    """Two 5x5 convolutions, each followed by 2x2 max-pooling, and two fully connected layers; gives logits."""

    architecture, title = "cnn", "convolutional network"

    def __init__(self, config: CNNConfig) -> None:
        super().__init__()
        check_counts(config)
        self.config = config
        self.image_shape, self.classes = config.image_shape, config.classes
        channels, height, width = config.image_shape
        first, second = config.filters
        self.layers = nn.Sequential(
            nn.Conv2d(channels, first, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(first, second, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Flatten(),
            nn.Linear(second * -(-height // 4) * -(-width // 4), config.width),
            nn.ReLU(),
            nn.Linear(config.width, config.classes),
        )

    def forward(self, images: Tensor) -> Float[Tensor, "B N"]:
        check_input(images, self.config.image_shape)
        return self.layers[ENCODER:](self.encode(images))

    def encode(self, images: Tensor) -> Float[Tensor, "B F"]:
        """What the convolutions give, as one row an image."""
        return self.layers[:ENCODER](images)
