"""What `gammacaps data` and `data check` say: which sets there are, what is in one, what is wrong with it."""

import math
import shlex
from collections import Counter
from typing import Any

import torch
from torch import Tensor

from gammacaps.data.dataset import DataSet, StoredImages
from gammacaps.data.inspection import Inspection
from gammacaps.data.loading import SPLITS, find, open_set
from gammacaps.data.named_sets import NAMED_SETS, names
from gammacaps.program import command

MOST_LINES = 40  # classes listed one by one
LARGE = 48  # the side from which the residual encoder is the better choice


def _absent(name: str) -> str:
    offered = NAMED_SETS[name].url if name in NAMED_SETS else ""
    return "not on this machine: " + ("downloaded when first used" if offered else "name its folder with --data-dir")


def overview(data_dir: str | None = None) -> tuple[dict[str, Any], str]:
    """Every named set and where it would be read from, as data and as words."""
    places = {name: find(name, data_dir) for name in names()}
    lines = [f"  {name:<16} {place or _absent(name)}" for name, place in places.items()]
    facts = {name: None if place is None else str(place) for name, place in places.items()}
    return facts, "\n".join(lines)


def summarize_set(
    name: str, data_dir: str | None = None, *, skip_unreadable: bool = False
) -> tuple[dict[str, Any], str]:
    """Counts, sizes and balance of a set's two splits, and what is odd about its files, as data and as words."""
    facts: dict[str, Any] = {"name": name, "splits": {}}
    notes: tuple[str, ...] = ()
    lines = []
    for split in SPLITS:
        data = open_set(name, split, data_dir=data_dir, skip_unreadable=skip_unreadable)
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
        if isinstance(data, DataSet):  # the files of a folder are the same ones for both splits
            notes = data.notes
            facts |= {"notes": list(data.notes), "skipped": list(data.skipped)} if data.notes else {}
    return facts, "\n".join([*lines, *(f"Note: {note}" for note in notes)])


def _mean(images: Tensor | StoredImages) -> float:
    if isinstance(images, Tensor):
        return images.mean().item()
    parts = (images[start : start + 1000].double().sum() for start in range(0, len(images), 1000))
    return torch.stack(list(parts)).sum().item() / math.prod(images.shape)


def summarize_inspection(inspection: Inspection, size: int | None = None) -> tuple[dict[str, Any], str]:
    """What `data check` says, as data and as words, with the command to go on with."""
    counts = {split: inspection.counts(split) for split in SPLITS}
    sizes = Counter(f"{width} x {height}" for width, height in (each.size for each in inspection.images)).most_common()
    modes = Counter(each.mode for each in inspection.images).most_common()
    facts = {
        "name": inspection.name,
        "class_names": list(inspection.class_names),
        "images_by_class": counts,
        "sizes": dict(sizes),
        "modes": dict(modes),
        "problems": list(inspection.problems),
        "notes": list(inspection.notes),
    }
    lines = []
    if inspection.class_names:
        wide = max(map(len, inspection.class_names[:MOST_LINES]))
        lines.append(f"{len(inspection.images):,} images of {len(inspection.class_names)} classes (train, test):")
        rows = list(zip(inspection.class_names, *counts.values(), strict=True))
        lines += [f"  {title:<{wide}} {train:>7,} {test:>7,}" for title, train, test in rows[:MOST_LINES]]
        lines += [f"  and {len(rows) - MOST_LINES:,} classes more"] if len(rows) > MOST_LINES else []
        lines.append(f"Sizes (width x height): {_listed(sizes)}")
        lines.append(f"Modes: {_listed(modes)}")
    for title, sentences in (("Must be fixed:", inspection.problems), ("Good to know:", inspection.notes)):
        lines += ["", title, *(f"  {sentence}" for sentence in sentences)] if sentences else []
    if not inspection.problems:
        side = size or max(max(each.size) for each in inspection.images)
        given = f" --size {size}" if size else ""
        preset = " --preset residual" if side >= LARGE else ""
        typed = command(f"train --data {shlex.quote(inspection.name)}{given}{preset}")
        lines += ["", f"Nothing must be fixed. Train with: {typed}"]
    return facts, "\n".join(lines).lstrip()


def _listed(counted: list[tuple[str, int]]) -> str:
    more = f" and {len(counted) - 5} more" if len(counted) > 5 else ""
    return ", ".join(f"{what} ({count:,})" for what, count in counted[:5]) + more
