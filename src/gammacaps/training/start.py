"""What a training starts from: its data, and the network with the seed's weights."""

import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.data import DataSet, StoredSet, open_set
from gammacaps.data.fingerprint import fingerprint
from gammacaps.distributed.processes import Processes
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.models import Model, create
from gammacaps.models.presets import check_memory
from gammacaps.names import VECTOR_PRESETS
from gammacaps.runs.config import DataFacts
from gammacaps.runs.plain import read_as
from gammacaps.runs.train_config import TrainConfig, model_changes

IMAGES = 2000  # as many are looked at for their mean and deviation, from all over the set
SAMPLE = 100  # and as many by which the set is known again
ALIKE = 1e-3  # by how much their brightness may differ: resized images are rounded otherwise on another processor


def training_data(config: TrainConfig, processes: Processes) -> DataSet | StoredSet:
    """The training split, the same in every process, as far as shapes, labels and the pixels of some images tell."""
    data = processes.each(lambda: open_set(config.data, "train", data_dir=config.data_dir, size=config.size))
    if processes.count > 1 and not processes.same(_checksums(data)):
        raise InputError(f"{data.name} is not the same on all machines: give each the same files.")
    return data


def _checksums(data: DataSet | StoredSet) -> tuple[tuple[int, ...], int, int]:
    """The images' shape, and checksums of all labels and of the pixels of every 97th image."""
    pixels = 0
    for start in range(0, len(data.labels), 97 * 100):  # a hundred in memory at once
        some = data.images[start : start + 97 * 100 : 97]
        # To bytes, since processors may round a resized image differently.
        pixels = zlib.crc32((some * 255).round().to(torch.uint8).numpy().tobytes(), pixels)
    return tuple(data.images.shape), zlib.crc32(data.labels.numpy().tobytes()), pixels


def describe(data: DataSet | StoredSet) -> dict[str, Any]:
    """What config.json says of the data, by which they are known again."""
    return {
        "name": data.name,
        "source": str(data.source),
        "class_names": list(data.class_names),
        "train_images": len(data.labels),
        "image_shape": list(data.images.shape[1:]),
        "labels": fingerprint(data.labels),
        "brightness": brightness(data),
    }


def brightness(data: DataSet | StoredSet) -> list[float]:
    """The mean pixels of some images from all over the set: unlike a hash, alike on all processors."""
    index: Tensor = torch.linspace(0, len(data.labels) - 1, min(len(data.labels), SAMPLE)).round().long()
    return [round(value, 6) for value in data.images[index].double().mean(dim=(1, 2, 3)).tolist()]


def check_same_data(data: DataSet | StoredSet, facts: DataFacts, folder: Path) -> None:
    """Refuses to go on with other data than those that a run was begun with; older runs say less of theirs."""
    now = read_as(DataFacts, describe(data))
    told = {
        "class names": (facts.class_names, now.class_names),
        "number of images": (facts.train_images, now.train_images),
        "shape of the images": (facts.image_shape, now.image_shape),
        "labels": (facts.labels, now.labels),
    }
    changed = [what for what, (then, here) in told.items() if then is not None and then != here]
    pairs = zip(facts.brightness or (), now.brightness or (), strict=False)
    if not changed and any(abs(then - here) > ALIKE for then, here in pairs):
        changed = ["images"]
    if changed:
        raise InputError(
            f"{data.name} is not what {folder} was trained on: the {changed[0]} changed since. Restore the data, or "
            "train a new run on what they are now."
        )


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
    if pick_device(config.device).type == "cpu":  # gradients, Adam's two moments and the running mean
        check_memory(model, copies=3 + (config.ema > 0), what="needs for training another")
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
