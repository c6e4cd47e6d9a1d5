"""What `gammacaps data` says: which sets there are, and what is in one."""

import math
from typing import Any

import torch
from torch import Tensor

from gammacaps.data import StoredImages, find, names, open_set


def overview(data_dir: str | None = None) -> tuple[dict[str, Any], str]:
    """Every named set and where it would be read from, as data and as words."""
    places = {name: find(name, data_dir) for name in names()}
    lines = [
        f"  {name:<14} {place or 'not on this machine: downloaded when first used'}" for name, place in places.items()
    ]
    facts = {name: None if place is None else str(place) for name, place in places.items()}
    return facts, "\n".join(lines)


def describe(name: str, data_dir: str | None = None) -> tuple[dict[str, Any], str]:
    """Counts, sizes and balance of a set's two splits, as data and as words."""
    facts: dict[str, Any] = {"name": name, "splits": {}}
    lines = []
    for split in ("train", "test"):
        data = open_set(name, split, data_dir=data_dir)
        counts = data.labels.bincount(minlength=len(data.class_names)).tolist()
        count, channels, height, width = data.images.shape
        facts["class_names"] = list(data.class_names)
        facts["splits"][split] = {
            "images": count,
            "shape": [channels, height, width],
            "images_by_class": counts,
            "mean": round(_mean(data.images), 6),
            "source": str(data.source),
        }
        lines.append(f"{split}: {count:,} images of {channels}x{height}x{width} from {data.source}")
        lines += [
            f"  {label:>3} {title:<14}{n:>7,}"
            for label, (title, n) in enumerate(zip(data.class_names, counts, strict=True))
        ]
    return facts, "\n".join(lines)


def _mean(images: Tensor | StoredImages) -> float:
    if isinstance(images, Tensor):
        return images.mean().item()
    parts = (images[start : start + 1000].double().sum() for start in range(0, len(images), 1000))
    return torch.stack(list(parts)).sum().item() / math.prod(images.shape)
