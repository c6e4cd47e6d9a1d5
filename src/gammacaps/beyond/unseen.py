"""Things that a network has never seen: noise, blank images, other data sets. Does it notice?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks import pgd
from gammacaps.beyond.sureness import KnownPatterns, Said, said
from gammacaps.data import find, load_set
from gammacaps.data.named_sets import NAMED_SETS
from gammacaps.evaluation.class_turns import places_in_turns
from gammacaps.metrics import auroc, false_alarms
from gammacaps.models import Model

NOISE, BLANK = "noise", "blank"
OTHERS = ("mnist", "fashion-mini", "smallnorb")  # other data sets, as far as they are on the machine
SAME = {"fashion-mnist": "fashion-mini"}  # data sets of the same things
STEPS = 40  # of the attack


def other_sets(own: str, asked: Sequence[str], data_dir: str | Path | None) -> tuple[list[str], list[str]]:
    """The data sets to show that are not the network's own: those asked for, else those at hand; and who is not."""
    if asked:
        return list(asked), []
    others = [name for name in OTHERS if _things(name) != _things(own)]
    there = [name for name in others if find(name, data_dir) is not None]
    left = [f"{name} was not shown: it is not on this machine (gammacaps data {name} gets it)." for name in others]
    return there, [words for name, words in zip(others, left, strict=True) if name not in there]


def _things(name: str) -> str:
    """The data set whose things it shows: parts and scalings of a set show the same."""
    whole = NAMED_SETS[name].files_of or name if name in NAMED_SETS else name
    return SAME.get(whole, whole)


def unseen_images(
    source: str, shape: tuple[int, int, int], count: int, *, seed: int, data_dir: str | Path | None = None
) -> Tensor:
    """So many images (or all of a smaller data set) of the network's shape (C, H, W) that it has no class for.

    Uniform noise; blank ones of one grey each, from black to white; or test images of a data set, each class in its
    turn, grey ones with equal channels and colours as their mean where the network's have another number of channels.
    """
    if source == NOISE:
        return torch.rand(count, *shape, generator=torch.Generator().manual_seed(seed))
    if source == BLANK:
        return torch.linspace(0, 1, count).view(-1, 1, 1, 1).expand(count, *shape).clone()
    data = load_set(source, "test", data_dir=data_dir, size=shape[1:])
    images = data.images[places_in_turns(data)[:count]]
    if images.shape[1] != shape[0]:
        images = images.mean(dim=1, keepdim=True).expand(-1, shape[0], -1, -1).contiguous()
    return images


def lengthened(model: Model, images: Tensor, *, eps: float, seed: int) -> Tensor:
    """The images as PGD (L-inf) moves them to make the longest class capsule, or the largest probability, longer."""

    def longest(scores: Tensor, labels: Tensor) -> Tensor:
        return model.probabilities(scores).clamp_min(1e-12).log().amax(dim=1)

    labels = torch.zeros(len(images), dtype=torch.int64, device=images.device)  # which the loss does not look at
    generator = torch.Generator(images.device).manual_seed(seed)
    return pgd(model, images, labels, eps=eps, step=eps / 10, steps=STEPS, loss=longest, generator=generator)


def told_apart(
    model: Model,
    known: Said,
    images: Tensor,
    patterns: KnownPatterns | None,
    *,
    eps: float,
    seed: int,
    batch: int,
    device: torch.device,
) -> dict[str, Any]:
    """How well test images, of which is `known` what the network says, are told from these, clean and attacked.

    By the longest class capsule, and by how well the pattern of the hidden capsules fits one that the classes have.
    The attack is on the class capsule, and an image that it makes no longer stays as it is.
    """
    clean = said(model, images, batch, device)
    starts = enumerate(images.split(batch), start=seed)
    moved = [lengthened(model, part.to(device), eps=eps, seed=own).cpu() for own, part in starts]
    attacked = said(model, torch.cat(moved), batch, device)
    longer = attacked.sure > clean.sure
    sure = torch.where(longer, attacked.sure, clean.sure)
    result: dict[str, Any] = {
        "images": len(images),
        "length": {**_figures(known.sure, clean.sure), "attacked": _figures(known.sure, sure)},
        "pattern": None,
    }
    if patterns is not None and None not in (known.pattern, clean.pattern, attacked.pattern):
        assert known.pattern is not None
        assert clean.pattern is not None
        assert attacked.pattern is not None
        usual, strange, moved_to = (
            patterns.familiar(each) for each in (known.pattern, clean.pattern, attacked.pattern)
        )
        under_attack = torch.where(longer, moved_to, strange)
        result["pattern"] = {**_figures(usual, strange), "attacked": _figures(usual, under_attack)}
    return result


def _figures(known: Tensor, unseen: Tensor) -> dict[str, float]:
    return {"auroc": auroc(known, unseen), "false_alarms": false_alarms(known, unseen)}
