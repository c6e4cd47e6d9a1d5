"""The data of a training, and what config.json says of them, so that they are known again."""

import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.data import DataSet, StoredSet, open_set
from gammacaps.data.fingerprint import fingerprint
from gammacaps.distributed.processes import Processes
from gammacaps.errors import InputError
from gammacaps.runs.config import DataFacts
from gammacaps.runs.train_config import TrainConfig
from gammacaps.runs.typed_json import read_as

SAMPLE = 100  # images by which a set is known again
ALIKE = 1e-3  # by how much their brightness may differ: resized images are rounded otherwise on another processor


def training_data(config: TrainConfig, processes: Processes) -> DataSet | StoredSet:
    """The training split, the same in every process, as far as shapes, labels and the pixels of some images tell."""
    data = processes.each(lambda: open_split(config, "train"))
    if processes.count > 1 and not processes.same(_checksums(data)):
        raise InputError(f"{data.name} is not the same on all machines: give each the same files.")
    return data


def open_split(config: TrainConfig, split: str) -> DataSet | StoredSet:
    """One split, read as the configuration says."""
    how: dict[str, Any] = {"size": config.size, "skip_unreadable": config.skip_unreadable}
    return open_set(config.data, split, data_dir=config.data_dir, **how)


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
        **({"skipped": list(data.skipped)} if isinstance(data, DataSet) and data.skipped else {}),
    }


def brightness(data: DataSet | StoredSet) -> list[float]:
    """The mean pixels of some images from all over the set: unlike a hash, alike on all processors."""
    index: Tensor = torch.linspace(0, len(data.labels) - 1, min(len(data.labels), SAMPLE)).round().long()
    return [round(value, 6) for value in data.images[index].double().mean(dim=(1, 2, 3)).tolist()]


def check_same_data(data: DataSet | StoredSet, facts: DataFacts, folder: Path) -> None:
    """Refuses to go on with other data than those that a run was begun with; older runs say less of theirs."""
    now = read_as(DataFacts, describe(data))
    facts_then_and_now = {
        "class names": (facts.class_names, now.class_names),
        "number of images": (facts.train_images, now.train_images),
        "shape of the images": (facts.image_shape, now.image_shape),
        "labels": (facts.labels, now.labels),
    }
    changed = [what for what, (then, here) in facts_then_and_now.items() if then is not None and then != here]
    pairs = zip(facts.brightness or (), now.brightness or (), strict=False)
    if not changed and any(abs(then - here) > ALIKE for then, here in pairs):
        changed = ["images"]
    if changed:
        raise InputError(
            f"{data.name} is not what {folder} was trained on: the {changed[0]} changed since. Restore the data, or "
            "train a new run on what they are now."
        )
