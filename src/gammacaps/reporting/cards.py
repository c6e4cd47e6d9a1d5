"""What the cards of capsules share: the input generated for each, real images, and what is to be said of it."""

from dataclasses import dataclass
from html import escape

import torch
import torch.nn.functional as F

from gammacaps.explain.pictures import image_png
from gammacaps.reporting.content import Picture
from gammacaps.reporting.study import Shown, Study

FELL_SHORT = 0.5  # of the length that a test image gives a capsule: a generated input of less says nothing of it


@dataclass(frozen=True)
class ClassCard:
    """A class capsule with the input that was generated for it, and how long it became."""

    name: str
    generated: Picture
    length: float  # that the capsule reached, in [0, 1]
    beside: Picture | None = None  # a training image of the class
    note: str = ""
    real: Picture | None = None  # the test images that make it longest, and where in them it looks
    other: Picture | None = None  # the input that another network's capsule of this class was given


def fell_short(study: Study, shown: Shown) -> bool:
    """Whether test images make the capsule so much longer that its generated input says nothing of it."""
    reached = shown.generated.activations.max().item()
    return shown.reached > study.tau and reached < FELL_SHORT * shown.reached


def caveat(study: Study, shown: Shown) -> str:
    """What is to be said of a capsule whose picture failed, or that does not stand for one thing."""
    if fell_short(study, shown):
        return f"the search fell short: a test image makes it {shown.reached:.2f} long"
    if shown.generated.activations.max().item() <= study.tau:
        return "nothing was found that activates it"
    groups = len(shown.features.groups)
    if groups == 1:
        return ""
    if shown.generated.averaged < len(shown.generated.best):
        return f"one of {groups} pictures that were found"
    return "no clear picture" if groups == len(shown.generated.best) else f"{groups} pictures in one, so blurred"


def real_tiles(shown: Shown, name: str, columns: int) -> Picture:
    """The test images that make a capsule longest in rows of so many, orange where it looks."""
    tiles = [F.pad(image, (0, 1, 0, 1), value=0.5) for image in shown.real]
    tiles += [torch.full_like(tiles[0], 0.5)] * (-len(tiles) % columns)
    rows = [torch.cat(tiles[k : k + columns], dim=2) for k in range(0, len(tiles), columns)]
    apart = torch.cat(rows, dim=1)[:, :-1, :-1]
    return Picture(image_png(apart, side=max(apart.shape)), f"Test images that make {name} longest, and where it looks")


def length_bar(length: float) -> str:
    share = 100 * min(1.0, max(0.0, length))
    return (
        f'<p class="length"><span>length <b>{length:.2f}</b></span>'
        f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><path class="track" d="M0 2H100"/>'
        f'<path class="range" d="M0 2H{share:.1f}"/></svg></p>'
    )


def note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>' if words else ""
