"""What every network checks of its configuration and its input, and whether data fit a network."""

from typing import Any

from torch import Tensor

from gammacaps.data import DataSet, StoredSet
from gammacaps.errors import InputError
from gammacaps.models.protocol import Model
from gammacaps.options import MOST, check_whole

# More would be built, or routed, without an end in sight.
MOST_LAYERS = 100
MOST_NAMED = {"iterations": 100, "depth": MOST_LAYERS}


def check_input(images: Tensor, image_shape: tuple[int, int, int]) -> None:
    """Images must be (B, C, H, W) of the shape that the network was made for."""
    if images.dim() != 4 or tuple(images.shape[1:]) != image_shape:
        channels, height, width = image_shape
        raise InputError(
            f"This network takes images of shape (B, {channels}, {height}, {width}), not {tuple(images.shape)}: "
            "resize them or create a network with this image_shape."
        )
    if not images.is_floating_point():
        raise InputError(f"Images must be floating point in [0, 1], not {images.dtype}: divide bytes by 255.")


def check_counts(config: Any) -> None:
    """Every number of a configuration must be positive, and there must be at least 2 capsules to choose from."""
    for name, value in vars(config).items():
        numbers = value if isinstance(value, tuple) else (value,)
        if len(numbers) > MOST_LAYERS:
            raise InputError(f"{name} names {len(numbers):,} layers: use at most {MOST_LAYERS}.")
        for number in numbers:
            if isinstance(number, int) and not isinstance(number, bool):
                check_whole(name, number, most=MOST_NAMED.get(name, MOST))
    if config.classes < 2:
        raise InputError(
            f"A network needs at least 2 classes, not {config.classes}: use two class capsules even for a "
            "yes-or-no question, since routing to one capsule is undefined."
        )
    if any(count < 2 for count in getattr(config, "hidden", ())):
        raise InputError("Each hidden layer needs at least 2 capsules: routing to one capsule is undefined.")


def check_fit(model: Model, data: DataSet | StoredSet, advice: str = "evaluate it on data like its own") -> None:
    """A network can say something only of images and classes like its own."""
    shape, classes = tuple(data.images.shape[1:]), len(data.class_names)
    if shape != model.image_shape or classes != model.classes:
        raise InputError(
            f"The network takes images of shape {model.image_shape} in {model.classes} classes, but "
            f"{data.name} has {shape} in {classes}: {advice}."
        )


def rescaled(images: Tensor, input_scale: int) -> Tensor:
    """What a network's first layer is given: the images, or their difference from grey times a number."""
    return images if input_scale == 1 else (images - 0.5) * input_scale
