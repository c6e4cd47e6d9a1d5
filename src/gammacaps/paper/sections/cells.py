"""Cells and tables of markdown, and the grids of pictures that several figures share."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gammacaps.evaluation.interval import with_interval
from gammacaps.paper.plan import PARTS, RULES, TITLES
from gammacaps.paper.readings import NOT_YET, Records
from gammacaps.paper.record import Record


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(row: dict[str, Any] | None) -> str:
    """An accuracy with its 95% interval."""
    if row is None or row["accuracy"] is None:
        return NOT_YET
    return with_interval(row)


def heading(record: Record) -> tuple[str, str, str, str]:
    """What names a run in a table: data, network, length, seed."""
    figures = record.figures
    return TITLES[figures["data"]], RULES[figures["rule"]], f"{record.steps:,}", str(figures["seed"])


def on_loss(train: dict[str, Any]) -> str:
    """What training was on, where that is not what the others' was on."""
    return ", on cross-entropy" if train["robust"] and train["attack_loss"] != "margin" else ""


def missing(part: str, measured: Records) -> str:
    """A line about the runs that a part still lacks; empty where it has all."""
    names = [name for name in PARTS[part] if name not in measured]
    return f"Not run yet ({len(names)}): {', '.join(f'`{name}`' for name in names)}." if names else ""


def as_images(array: np.ndarray) -> list[Tensor]:
    """Images (C, H, W) in [0, 1] from bytes (n, C, H, W)."""
    return list(torch.from_numpy(array).float() / 255)
