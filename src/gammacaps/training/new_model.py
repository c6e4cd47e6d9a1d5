"""The network that a training starts from: a preset with the seed's weights, for the data's images and classes."""

import torch
from torch import Tensor, nn

from gammacaps.data import DataSet, StoredSet
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.models import Model, create
from gammacaps.models.presets import check_memory
from gammacaps.names import VECTOR_PRESETS
from gammacaps.runs.train_config import TrainConfig, model_changes

IMAGES = 2000  # as many are looked at for their mean and deviation, from all over the set


def new_model(config: TrainConfig, data: DataSet | StoredSet) -> Model:
    """The network that a configuration names, with the seed's initial weights, for the data's images and classes."""
    torch.manual_seed(config.seed)
    routing = {"routing": config.routing} if config.preset in VECTOR_PRESETS else {}
    changes = model_changes(config)
    for name in ("image_shape", "classes"):
        if name in changes:
            raise InputError(f"{name} follows from the data: leave it out of --model (--size resizes the images).")
    fitting = {"image_shape": tuple(data.images.shape[1:]), "classes": len(data.class_names)}
    side = min(data.images.shape[2:])
    if config.shift >= side:
        raise InputError(f"A shift of {config.shift} moves images of {side} pixels out of sight: give fewer.")
    model = create(config.preset, **{**fitting, **routing, **changes})
    if pick_device(config.device).type == "cpu":  # gradients, Adam's two moments, the running mean, the best
        check_memory(model, copies=3 + (config.ema > 0) + (config.validate > 0), what="needs for training another")
    if config.standardize:
        standardize_first(model, data)
    return model


def standardize_first(model: nn.Module, data: DataSet | StoredSet) -> None:
    """Changes the initial weights of the first convolution to what they are for images of mean 0 and deviation 1.

    They take in the data's mean and deviation, so that the network's input stays the image itself, with pixels in
    [0, 1], in which an attack's eps is told. Exact where no zeros are padded around the image.
    """
    mean, deviation = spread(data)
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    with torch.no_grad():
        first.weight /= deviation
        if first.bias is not None:
            first.bias -= mean * first.weight.sum(dim=(1, 2, 3))


def spread(data: DataSet | StoredSet) -> tuple[float, float]:
    """Mean and standard deviation of the pixels."""
    count = len(data.labels)
    index: Tensor = torch.linspace(0, count - 1, min(count, IMAGES)).round().long()
    pixels = data.images[index].double()
    return pixels.mean().item(), max(pixels.std(correction=0).item(), 1e-3)
