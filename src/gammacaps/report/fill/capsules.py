"""Capsules as cards: the inputs generated for them, and what is to be said of each."""

from pathlib import Path

from gammacaps.explain.pictures import image_png
from gammacaps.report.collect import Collected, Shown
from gammacaps.report.content import Capsule, Layer, Picture
from gammacaps.report.fill.audited import kind_of

FELL_SHORT = 0.5  # of the length that a test image gives a capsule: a generated input of less says nothing of it
SERVED = 3  # classes named under a hidden capsule, at most


def class_capsule(found: Collected, shown: Shown) -> Capsule:
    name = found.test.class_names[shown.index]
    best = int(shown.generated.scores.argmax())
    mistaken = best != shown.index and not fell_short(found, shown)
    note = f"taken for {found.test.class_names[best]}" if mistaken else plainly(found, shown)
    other = None
    if found.beside:
        alt = f"The input that {other_name(found)} was given for the class {name}"
        other = Picture(image_png(found.beside[shown.index].generated.image), alt)
    return Capsule(
        name,
        Picture(image_png(shown.generated.image), f"The input generated for the class {name}"),
        shown.generated.activation,
        served(found, shown),
        Picture(image_png(found.examples[shown.index]), f"A training image of the class {name}"),
        note,
        other=other,
    )


def other_name(found: Collected) -> str:
    """Of the network that is shown beside."""
    return Path(found.config.beside or "").name


def layer(found: Collected, name: str) -> Layer:
    capsules = tuple(
        Capsule(
            f"Capsule {shown.index}",
            Picture(image_png(shown.generated.image), f"The input generated for capsule {shown.index} of layer {name}"),
            shown.generated.activation,
            served(found, shown),
            note=plainly(found, shown),
            kind=kind_of(found.audit, name, shown.index),
        )
        for shown in found.capsules[name]
    )
    total = found.totals[name]
    some = "" if len(capsules) == total else f"the {len(capsules)} of {total:,} capsules that test images activate most"
    return Layer(name, capsules, some)


def served(found: Collected, shown: Shown) -> tuple[tuple[str, float], ...]:
    """The classes that the generated input activates, the longest first."""
    order = shown.generated.scores.argsort(descending=True)[:SERVED].tolist()
    values = [(found.test.class_names[k], shown.generated.scores[k].item()) for k in order]
    return tuple((name, value) for name, value in values if value > found.config.tau)


def fell_short(found: Collected, shown: Shown) -> bool:
    """Whether test images make the capsule so much longer that its generated input says nothing of it."""
    reached = shown.generated.activations.max().item()
    return shown.reached > found.config.tau and reached < FELL_SHORT * shown.reached


def plainly(found: Collected, shown: Shown) -> str:
    """What is to be said of a capsule whose picture failed, or that does not stand for one thing."""
    if fell_short(found, shown):
        return f"the search fell short: a test image makes it {shown.reached:.2f} long"
    if shown.generated.activations.max().item() <= found.config.tau:
        return "nothing was found that activates it"
    groups = len(shown.features.groups)
    if groups == 1:
        return ""
    return "no clear picture" if groups == len(shown.generated.best) else f"{groups} pictures in one, so blurred"
