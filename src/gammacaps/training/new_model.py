"""The network that a training starts from, with the seed's weights: a preset, or what a run that goes on has stored."""

from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.data import DataSet, StoredSet
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.models import Model, check_fit, create, from_config
from gammacaps.models.presets import check_memory
from gammacaps.names import VECTOR_PRESETS
from gammacaps.runs.train_config import TrainConfig, model_changes

IMAGES = 2000  # as many are looked at for their mean and deviation, from all over the set


def new_model(config: TrainConfig, data: DataSet | StoredSet) -> Model:
    """The network that a configuration names, with the seed's initial weights, for the data's images and classes."""
    routing = {"routing": config.routing} if config.preset in VECTOR_PRESETS else {}
    changes = model_changes(config)
    for name in ("image_shape", "classes"):
        if name in changes:
            raise InputError(f"{name} follows from the data: leave it out of --model (--size resizes the images).")
    fitting = {"image_shape": tuple(data.images.shape[1:]), "classes": len(data.class_names)}
    side = min(data.images.shape[2:])
    if config.shift >= side:
        raise InputError(f"A shift of {config.shift} moves images of {side} pixels out of sight: give fewer.")
    torch.manual_seed(config.seed)
    return _ready(create(config.preset, **{**fitting, **routing, **changes}), config, data)


def stored_model(values: dict[str, Any], config: TrainConfig, data: DataSet | StoredSet) -> Model:
    """The network that a run's config.json describes, with the seed's initial weights, for data that fit it.

    What its preset is called counts no more: a preset may have changed since.
    """
    torch.manual_seed(config.seed)
    model = from_config(values)
    check_fit(model, data, "resume with the data that the run was started with")
    return _ready(model, config, data)


def _ready(model: Model, config: TrainConfig, data: DataSet | StoredSet) -> Model:
    """The network, if there is memory to train it, its first layer made for the data where that is asked for."""
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
