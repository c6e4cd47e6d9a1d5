"""The bridge to AutoAttack (Croce and Hein, 2020) in the package pyautoattack: its parts, fit to any class count."""

import contextlib
import importlib.util
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gammacaps.attacks.checks import check_attack, check_scores
from gammacaps.attacks.gradient import Classifier
from gammacaps.data.checks import check_labels
from gammacaps.errors import InputError, check_choice
from gammacaps.nn.frozen import frozen
from gammacaps.replay import replayed

NORMS = {"linf": "Linf", "l2": "L2", "l1": "L1"}  # as AutoAttack calls them
# In AutoAttack's own order, each on the images that those before it left standing.
PARTS = ("apgd-ce", "apgd-t", "fab-t", "square")
# The targeted loss of APGD-T is a ratio of the first, third and fourth score.
FEWEST_CLASSES = {"apgd-ce": 2, "apgd-t": 4, "fab-t": 2, "square": 2}


def why_not_auto(part: str, classes: int) -> str | None:
    """Why a part of AutoAttack can't run here, or None where it can."""
    check_choice("part of AutoAttack", part, PARTS)
    if importlib.util.find_spec("pyautoattack") is None:
        return "it needs the package pyautoattack: pip install 'gammacaps[attacks]'"
    if classes < FEWEST_CLASSES[part]:
        return f"its loss needs {FEWEST_CLASSES[part]} classes and the network has {classes}"
    return None


def auto_attack(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    part: str | None = None,
    seed: int = 0,
    queries: int = 5000,
    norm: str = "linf",
) -> Tensor:
    """The images that AutoAttack's standard version gives; those it can't break stay as they are.

    Args:
        part: one of "apgd-ce", "apgd-t", "fab-t" and "square"; without it all of them, each on what those before it
            left standing. With fewer than 4 classes that is all but "apgd-t", whose loss needs them.
        seed: AutoAttack's; the random state outside is left as it was.
        queries: how often "square", which sees scores alone, may ask.
        norm: of eps, "linf", "l2" or "l1".
    """
    check_attack(images, labels, eps=eps, norm=norm, queries=queries, seed=seed)
    if part is not None:
        check_choice("part of AutoAttack", part, PARTS)
    if len(images) == 0:
        return images.clone()
    labels = labels.long()
    with torch.no_grad():
        scores = model(images[:1])
    check_scores(scores, labels[:1])
    classes = scores.shape[1]
    check_labels(labels, len(images), classes)
    parts = [name for name in PARTS if classes >= FEWEST_CLASSES[name]] if part is None else [part]
    reason = why_not_auto(parts[0], classes) if parts else f"it needs 2 classes and the network has {classes}"
    if reason is not None:
        raise InputError(f"The attack {part or 'AutoAttack'} can't run: {reason}.")
    result, left = images.detach().clone(), torch.arange(len(images), device=images.device)
    answer = replayed(model) if isinstance(model, nn.Module) else model
    for name in parts:
        with frozen(model), _random_state_kept():
            whole = _whole(answer, eps, norm, seed, images.device)
            one = _part(whole, name, seed, queries, classes)
            attacked = one.perturb(images[left].clone(), labels[left])
            with torch.no_grad():
                broken = model(attacked).argmax(dim=1) != labels[left]
        result[left[broken]] = attacked.detach()[broken]
        left = left[~broken]
        if len(left) == 0:
            break
    return result


def _whole(model: Classifier, eps: float, norm: str, seed: int, device: torch.device) -> Any:
    """AutoAttack's standard version."""
    from pyautoattack import AutoAttack

    return AutoAttack(model, eps=eps, norm=NORMS[norm], seed=seed, version="standard", device=device)


def _part(whole: Any, part: str, seed: int, queries: int, classes: int) -> Any:
    """The part as the standard version sets it, but with no more targets than there are wrong classes."""
    if part == "apgd-ce":
        whole.apgd.loss, whole.apgd.seed = "ce", seed
        return whole.apgd
    if part == "apgd-t":
        whole.apgd_targeted.seed = seed
        whole.apgd_targeted.n_target_classes = min(whole.apgd_targeted.n_target_classes, classes - 1)
        return whole.apgd_targeted
    if part == "fab-t":
        whole.fab.targeted, whole.fab.n_restarts, whole.fab.seed = True, 1, seed
        whole.fab.n_target_classes = min(whole.fab.n_target_classes, classes - 1)
        return whole.fab
    whole.square.seed, whole.square.n_queries = seed, queries
    return whole.square


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    """AutoAttack seeds the process's own generators; outside nothing shall notice."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
