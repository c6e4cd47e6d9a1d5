"""Capsules as cards: the input generated for each, and what is to be said of it."""

from dataclasses import dataclass
from html import escape

import torch
import torch.nn.functional as F

from gammacaps.explain.pictures import image_png
from gammacaps.reporting.content import Picture
from gammacaps.reporting.markup import picture
from gammacaps.reporting.study import Shown, Study

FELL_SHORT = 0.5  # of the length that a test image gives a capsule: a generated input of less says nothing of it
SERVED = 3  # classes named under a hidden capsule, at most


@dataclass(frozen=True)
class CapsuleCard:
    """A capsule with the input that was generated for it, how long it became, and the classes that input activates."""

    name: str
    generated: Picture
    length: float  # that the capsule reached, in [0, 1]
    serves: tuple[tuple[str, float], ...]  # classes and their scores by the generated input, largest first
    beside: Picture | None = None  # a training image of the class
    note: str = ""
    kind: str = ""  # what the audit calls it
    speaks: str = ""  # what it stands for: the name of the classes that it is active for
    classes: str = ""  # these classes one by one
    suffers: tuple[str, ...] = ()  # the classes that suffer most without it, with their accuracies before and after
    real: Picture | None = None  # the test images that make it longest, and where in them it looks
    other: Picture | None = None  # the input that another network's capsule of this class was given


def served(study: Study, shown: Shown) -> tuple[tuple[str, float], ...]:
    """The classes that the generated input activates, the longest first."""
    order = shown.generated.scores.argsort(descending=True)[:SERVED].tolist()
    values = [(study.test.class_names[k], shown.generated.scores[k].item()) for k in order]
    return tuple((name, value) for name, value in values if value > study.config.tau)


def fell_short(study: Study, shown: Shown) -> bool:
    """Whether test images make the capsule so much longer that its generated input says nothing of it."""
    reached = shown.generated.activations.max().item()
    return shown.reached > study.config.tau and reached < FELL_SHORT * shown.reached


def caveat(study: Study, shown: Shown) -> str:
    """What is to be said of a capsule whose picture failed, or that does not stand for one thing."""
    if fell_short(study, shown):
        return f"the search fell short: a test image makes it {shown.reached:.2f} long"
    if shown.generated.activations.max().item() <= study.config.tau:
        return "nothing was found that activates it"
    groups = len(shown.features.groups)
    if groups == 1:
        return ""
    if shown.generated.averaged < len(shown.generated.best):
        return f"one of {groups} pictures that were found"
    return "no clear picture" if groups == len(shown.generated.best) else f"{groups} pictures in one, so blurred"


def real_strip(shown: Shown, name: str) -> Picture:
    """The test images that make a capsule longest side by side, small, orange where it looks."""
    apart = torch.cat([F.pad(image, (0, 1), value=1.0) for image in shown.real], dim=2)[..., :-1]
    return Picture(image_png(apart, side=max(apart.shape)), f"Test images that make {name} longest, and where it looks")


def real(card: CapsuleCard) -> str:
    return "" if card.real is None else picture(card.real, "pixels real")


def length_bar(card: CapsuleCard) -> str:
    share = 100 * min(1.0, max(0.0, card.length))
    return (
        f'<p class="length"><span>length <b>{card.length:.2f}</b></span>'
        f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><path class="track" d="M0 2H100"/>'
        f'<path class="range" d="M0 2H{share:.1f}"/></svg></p>'
    )


def note(card: CapsuleCard) -> str:
    return f'<p class="note">{escape(card.note)}</p>' if card.note else ""
