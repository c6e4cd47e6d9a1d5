"""What every attack checks of its arguments, so that none gives something that is no image."""

import numbers
from typing import TypeGuard

import torch
from torch import Tensor

from gammacaps.attacks.balls import BALLS
from gammacaps.data import check_images
from gammacaps.data.checks import check_labels
from gammacaps.errors import InputError, check_choice
from gammacaps.options import FURTHEST, LARGEST_SEED, MOST_IN_CODE, as_a_share


def check_attack(
    images: object,
    labels: object = None,
    *,
    eps: object,
    norm: str = "linf",
    step: object = 0,
    seed: object = 0,
    **counts: object,
) -> None:
    """Check that images are floats (B, C, H, W) in [0, 1], labels integers (B,), and the numbers such that they can be.

    There may be no images at all. `counts` are the numbers of steps, restarts, draws and the like, by their names.
    """
    if isinstance(images, Tensor) and images.ndim > 0 and len(images) == 0:
        check_images(torch.zeros(1, *images.shape[1:], dtype=images.dtype))  # all but that there are none
    else:
        check_images(images)
    assert isinstance(images, Tensor)
    if labels is not None:
        check_labels(labels, len(images))
    check_choice("norm", norm, BALLS)
    if norm == "linf" and _is_number(eps) and 1 < eps < float("inf"):
        raise InputError(f"An attack's eps must be from 0 to 1, the range of a pixel, not {eps}{as_a_share(eps)}.")
    for name, value, most in (("eps", eps, 1 if norm == "linf" else FURTHEST), ("step", step, FURTHEST)):
        if not (_is_number(value) and 0 <= value <= most):
            raise InputError(f"An attack's {name} must be a number from 0 to {most:g}, not {value!r}: correct it.")
    for name, value in counts.items():
        if not (_is_whole(value) and 1 <= value <= MOST_IN_CODE):
            raise InputError(
                f"An attack's {name} must be a whole number from 1 to {MOST_IN_CODE:,}, not {value!r}: correct it."
            )
    if not (_is_whole(seed) and 0 <= seed <= LARGEST_SEED):
        raise InputError(f"An attack's seed must be a whole number from 0 to {LARGEST_SEED}, not {seed!r}: correct it.")


def check_start(start: object, images: Tensor, *, what: str = "start") -> None:
    """Check that the points an attack starts from are finite and as many as the images."""
    if not isinstance(start, Tensor) or start.shape != images.shape:
        given = tuple(start.shape) if isinstance(start, Tensor) else type(start).__name__
        raise InputError(f"An attack's {what} has the images' shape {tuple(images.shape)}, not {given}.")
    if not start.isfinite().all():
        raise InputError(f"An attack's {what} holds a value that is not a finite number: correct it.")


def check_scores(scores: object, labels: Tensor) -> None:
    """Check that a classifier gives scores (B, N), and that the labels are of its classes."""
    if not isinstance(scores, Tensor) or scores.dim() != 2 or len(scores) != len(labels):
        given = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(f"A classifier gives scores (B, N), not {given}.")
    check_labels(labels, len(labels), scores.shape[1])


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
