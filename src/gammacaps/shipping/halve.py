"""A run's weights in half precision, small enough to ship, as a run of its own that is then measured."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced
from gammacaps.files import new_folder
from gammacaps.models import Model, check_fit, from_config, to_config
from gammacaps.models.folder import WEIGHTS, write_config, write_weights
from gammacaps.runs.run import Run

LIMIT = 8 * 2**20  # bytes of a shipped network's weights
KINDS = {"float16": torch.float16, "bfloat16": torch.bfloat16}
IMAGES = 200  # test images by which the two kinds are compared


def halve(run: Path, out: Path, *, data: str | None = None) -> dict[str, Any]:
    """Writes the run `out`, the network of `run` in half precision; without its decoder where that is too large.

    Of float16 and bfloat16 it takes the one that moves the scores of test images less. `data` is the set that its
    figures will be of, where that is not the one it was trained on. The plain values that it adds to config.json.
    """
    of = Run(run)
    name, stored = of.data_name(data), of.stored
    test = of.load_data("test", data)
    model = lighter(of.model())
    check_fit(model, test)
    images, _ = balanced(test, IMAGES)
    moved = {kind: scores_moved(model, halved(model, dtype), images) for kind, dtype in KINDS.items()}
    kind = min(moved, key=lambda name: moved[name])
    about = {"precision": kind, "scores_moved": moved[kind], "trained_steps": of.steps, "measured_on": name}
    trained_on = {key: value for key, value in stored.get("data", {}).items() if key not in ("source", "skipped")}
    training = stored.get("train", {}) | {"data_dir": None}
    kept = {"train": training, "data": trained_on, "machine": of.config.machine}
    with new_folder(out) as temporary:
        write_config(temporary, {"model": to_config(model), **kept, **about})
        write_weights(temporary, {name: t.to(KINDS[kind]) for name, t in model.state_dict().items()})
        size = (temporary / WEIGHTS).stat().st_size
        if size > LIMIT:
            raise InputError(f"{run} takes {size:,} bytes in half precision, but at most {LIMIT:,} can be shipped.")
    return about


def lighter(model: Model) -> Model:
    """The network itself, or the same without its decoder where its halved weights would be too large to ship."""
    bytes_halved = 2 * sum(p.numel() for p in model.parameters())
    if bytes_halved < LIMIT or not model.reconstructs:
        return model
    bare = from_config({**to_config(model), "decoder": ()})
    wanted = bare.state_dict().keys()
    bare.load_state_dict({name: tensor for name, tensor in model.state_dict().items() if name in wanted})
    return bare.eval()


def halved(model: Model, dtype: torch.dtype) -> Model:
    """The network in float32 with weights that a half precision can hold."""
    rounded = from_config(to_config(model))
    rounded.load_state_dict({name: tensor.to(dtype).float() for name, tensor in model.state_dict().items()})
    return rounded.eval()


@torch.no_grad()
def scores_moved(model: Model, other: Model, images: Tensor) -> float:
    """By how much a score of an image differs at most between two networks; inf where one is not a number."""
    moved = torch.cat([(model(part) - other(part)).abs() for part in images.split(50)])
    return moved.nan_to_num(nan=float("inf")).max().item()
