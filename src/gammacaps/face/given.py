"""What a user gives to the check: labels of several kinds, and a model, which is tried on a few images first."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gammacaps.attacks.gradient import Classifier
from gammacaps.data.checks import check_labels
from gammacaps.errors import InputError, on_one_line
from gammacaps.models import Model
from gammacaps.models.checks import check_input

TRIED = 2  # images: of a single one, a model that forgets the batch is not seen
SIDES = (28, 32, 48, 64, 96, 128, 224, 256, 299)  # of the images that classifiers usually take
LONGEST = 160  # signs of another library's error that are repeated


def as_labels(labels: object) -> Tensor:
    """Class numbers (N,) that stand in a tensor, a list or an array."""
    if isinstance(labels, Tensor):
        return labels
    try:
        numbers = np.asarray(labels)
    except (TypeError, ValueError):  # lists of several lengths, or tensors on a GPU
        numbers = np.asarray(None)
    if numbers.dtype.kind not in "iu":
        raise InputError(
            "Labels are whole numbers, one for each image, in a tensor, a list or an array, not "
            f"{on_one_line(repr(labels))[:40]}: give class numbers from 0 on."
        )
    return torch.from_numpy(numbers.astype(np.int64))


@torch.no_grad()
def try_model(model: Classifier, images: Tensor, labels: Tensor) -> None:
    """Checks on a few images that a model takes them and gives a score for each class, and that labels are of these."""
    few = images[:TRIED]
    weight = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    if weight is not None and weight.is_floating_point() and weight.dtype != images.dtype:
        raise InputError(
            f"The model's weights are {_short(weight.dtype)} and the images {_short(images.dtype)}: give both as "
            "float32, by model.float() and images.float()."
        )
    if isinstance(model, Model):
        check_input(images, model.image_shape)
    try:
        scores = model(few)
    except InputError:
        raise
    except Exception as error:  # whatever a user's code raises
        if _is_of_memory(error):
            raise
        raise InputError(_why_not(model, few, error)) from error
    _check_scores(scores, len(few))
    check_labels(labels, len(images), scores.shape[1])


def _why_not(model: Classifier, images: Tensor, error: Exception) -> str:
    """Says what shape it wants instead, as far as its first convolution and images of usual sizes tell."""
    given = f"The model can't take images of shape {_shape(images)}"
    layers = model.modules() if isinstance(model, nn.Module) else ()
    first = next((layer for layer in layers if isinstance(layer, nn.Conv2d)), None)
    channels = images.shape[1] if first is None else first.in_channels
    if images.shape[1] != channels and images.shape[3] == channels:
        return f"{given}: their channels come last, so put them first by images.permute(0, 3, 1, 2)."
    # Images of the shape that it was given may do too, but then it fails by what they show, not by their shape.
    others = ((channels, side, side) for side in SIDES if (channels, side, side) != tuple(images.shape[1:]))
    wanted = next((shape for shape in others if _takes(model, images.new_zeros(TRIED, *shape))), None)
    if wanted is not None and not _takes(model, torch.zeros_like(images)):
        return f"{given}: it takes (B, {', '.join(map(str, wanted))}), so give images of that shape."
    if images.shape[1] != channels:
        return f"{given}: its first convolution takes {channels} channels, so give images that have as many."
    words = f"{type(error).__name__}: {on_one_line(str(error))[:LONGEST]}"
    return f"{given} ({words}): give images like those that it was trained on, or fix it."


def _takes(model: Classifier, images: Tensor) -> bool:
    try:
        model(images)
    except Exception as error:  # as above
        if _is_of_memory(error):
            raise
        return False
    return True


def _is_of_memory(error: Exception) -> bool:
    """Whether memory has run out, which no other shape would mend; on a CPU torch has no class of its own for it."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def _check_scores(scores: Any, count: int) -> None:
    """Scores must be a tensor (B, N) of numbers."""
    if not isinstance(scores, Tensor):
        kind = type(scores).__name__
        raise InputError(f"What the model gives is of type {kind}, not a tensor of scores (B, N): {_way_out(scores)}.")
    if scores.dim() != 2 or len(scores) != count or scores.shape[1] < 2 or not scores.is_floating_point():
        raise InputError(
            f"The model gives {_short(scores.dtype)} of shape {tuple(scores.shape)} for {count} images, not scores "
            "(B, N), one for each image and class: wrap it in a function that gives these."
        )
    if scores.isnan().any():
        raise InputError("The model's scores are NaN: fix it, or load weights that are finite.")


def _way_out(scores: Any) -> str:
    """How to make scores of what a model gives, where that can be seen."""
    if isinstance(scores, tuple | list) and len(scores) and isinstance(scores[0], Tensor):
        way = "model(images)[0]"
    elif isinstance(scores, dict) and "logits" in scores:
        way = 'model(images)["logits"]'
    elif isinstance(getattr(scores, "logits", None), Tensor):
        way = "model(images).logits"
    else:
        return "wrap it in a function that gives one, worked out by torch, since attacks need its gradient"
    return f"after model.eval(), give lambda images: {way} in its place"


def _shape(images: Tensor) -> str:
    return f"({', '.join(['B', *map(str, images.shape[1:])])})"


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
