"""A report with something in every section, and names that would break a careless page."""

import io
from dataclasses import replace

import numpy as np
from PIL import Image

from gammacaps.reporting.cards import ClassCard
from gammacaps.reporting.content import Curve, Fact, Figure, Picture, Series, Table, Value
from gammacaps.reporting.hidden_card import HiddenCard
from gammacaps.reporting.page import Page
from gammacaps.reporting.sections.audit import ShownAudit
from gammacaps.reporting.sections.checks import ShownCheck
from gammacaps.reporting.sections.classes import ClassCards
from gammacaps.reporting.sections.hidden import Galleries, Gallery
from gammacaps.reporting.sections.images import ShownImage, ShownImages
from gammacaps.reporting.sections.network import About
from gammacaps.reporting.sections.rerun import Command, Rerun
from gammacaps.reporting.sections.scores import Score, Scores
from gammacaps.reporting.sections.trees import ShownTree, ShownTrees

EVIL = '<script>document.title="broken"</script>'
CLASSES = ("T-shirt", "Trouser", EVIL, 'a "quoted" & long | name of a class of images')


def png(seed: int, height: int = 28, width: int = 28) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def svg(width: int = 700) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="300" viewBox="0 0 {width} 300">'
        f'<path d="M10 10L{width - 10} 290" stroke="#0072b2"/><text x="20" y="40">tree</text></svg>'
    )


def capsule(name: str, seed: int, length: float, note: str = "") -> ClassCard:
    generated = Picture(png(seed), f"Generated input of {name}")
    return ClassCard(name, generated, length, Picture(png(seed + 50), f"A training image: {name}"), note)


def hidden(number: int, *classes: str, kind: str = "gamma-capsule", note: str = "") -> HiddenCard:
    rates = tuple((name, 0.9 if name in classes else 0.1) for name in CLASSES)
    gamma = Value(f"gamma hidden 1 {number}", "0.50") if classes else None
    name = " and ".join(classes)
    generated = Picture(png(20 + number), f"Generated input of capsule {number}")
    return HiddenCard(number, generated, 0.8, rates, kind, name, classes, gamma, note=note, real=generated)


def shown_images(names: tuple[str, ...] = CLASSES) -> ShownImages:
    images = tuple(
        ShownImage(name, Picture(png(k), name), name, Picture(png(k + 5), f"{name} attacked"), names[0])
        for k, name in enumerate(names)
    )
    return ShownImages(images, 0.1)


def bare() -> Page:
    """Of a run that was neither measured nor audited."""
    contents = {"network": About("Nothing is known of it."), "scores": None, "audit": None, "rerun": Rerun()}
    return Page("A network", "runs/mine", contents=contents)


def with_contents(page: Page, **contents: object) -> Page:
    """The same page with other contents of some sections."""
    return replace(page, contents={**page.contents, **contents})


def full() -> Page:
    eps = (0.0, 0.05, 0.1, 0.2, 0.3)
    fgsm, pgd = (0.86, 0.74, 0.63, 0.42, 0.24), (0.86, 0.72, 0.58, 0.31, 0.08)
    names = ("FGSM", "PGD-40")
    series = tuple(
        Series(name, tuple(zip(eps, ys, strict=True)), tuple((max(0, y - 0.04), min(1, y + 0.04)) for y in ys))
        for name, ys in zip(names, (fgsm, pgd), strict=True)
    )
    rows = [Score("Clean", 0.0, 0.86, 0.83, 0.89)]
    rows += [
        Score(name, e, y, max(0, y - 0.04), y + 0.04)
        for name, ys in zip(names, (fgsm, pgd), strict=True)
        for e, y in zip(eps[1:], ys[1:], strict=True)
    ]
    tau = Curve(
        "Which capsules count as active",
        "threshold tau",
        "share of capsules",
        (Series("gamma-capsules", ((0.01, 0.9), (0.1, 0.8), (0.3, 0.35))),),
        "The verdict holds for thresholds up to 0.2.",
        marks=(("used here", 0.1),),
    )
    strength = Curve(
        "Accuracy and the size of the attack",
        "eps",
        "images answered rightly",
        series,
        "The bands are 95% intervals.",
        levels=(("guessing", 0.25),),
        marks=(("trained at", 0.1),),
        accuracies=True,
    )
    contents = {
        "images": shown_images(),
        "curve": replace(strength, title="", y=""),
        "network": About(
            "A gamma-capsule network that tells 4 kinds of images apart, trained for 1,200 steps under attack.",
            (Fact("Weights", "347,152"), Fact("Routing", "sda", "scaled-distance agreement, 3 iterations")),
        ),
        "scores": Scores(tuple(rows), 500, ("40 steps of 0.001 reach 0.04, less than eps 0.3.",)),
        "checks": (
            ShownCheck(
                "More steps help no more",
                "pass",
                "",
                "0.4%",
                "of the images fall only to longer attacks",
                "Ten times the steps lower the accuracy by 0.4 points.",
            ),
            ShownCheck(
                "The attack crosses its ball",
                "warn",
                "The steps reach",
                "0.04 × eps",
                "",
                "The steps are too short for the largest eps.",
            ),
            ShownCheck(
                "Noise does less than an attack",
                "fail",
                "",
                "12.0%",
                "of the images fall to noise and not to gradients",
                "Random noise does more harm than the attack.",
            ),
        ),
        "strength": strength,
        "classes": ClassCards(tuple(capsule(name, place, 0.9 - 0.2 * place) for place, name in enumerate(CLASSES))),
        "hidden": Galleries(
            (
                Gallery(
                    "hidden 1",
                    (
                        *(hidden(k, CLASSES[k % 4]) for k in range(6)),
                        hidden(6, kind="dead", note="nothing was found that activates it"),
                        hidden(7, kind="not useful"),
                    ),
                ),
            ),
            audited=True,
            eps=0.1,
        ),
        "trees": ShownTrees(
            tuple(
                ShownTree(
                    f"Image {k}: {CLASSES[k]}",
                    Picture(svg(), f"The parse tree of image {k}, clean"),
                    f"Clean: answered {CLASSES[k]}.",
                    Picture(svg(500), f"The parse tree of image {k}, attacked"),
                    "Attacked at eps 0.1: answered Trouser.",
                )
                for k in range(3)
            ),
            tau=0.3,
        ),
        "audit": ShownAudit(
            "warn",
            "12 of 16 hidden capsules are gamma-capsules.",
            0.3,
            (
                Table(
                    "Every hidden capsule",
                    ("capsule", "useful", "under attack", "verdict"),
                    (("0", "1.2", "0.8", EVIL),),
                ),
            ),
            (tau, tau),
            ("A capsule that is never active has no usefulness.",),
        ),
        "maps": (
            Figure(
                "Confusion",
                Picture(png(99, 300, 900), "Confusion matrix"),
                "Rows are true classes.",
                dark=Picture(png(98, 300, 900), "Confusion matrix"),
            ),
            Figure("Filters", Picture(svg(300), "Filters of the first layer"), "Concentrated weights."),
        ),
        "rerun": Rerun(
            (
                Command(
                    "gammacaps train --data fashion-mini --preset small --eps 0.1 --steps 1200 --seed 0 "
                    "--out runs/mine",
                    "Train it",
                ),
                Command("gammacaps report runs/mine", "Make this page"),
            ),
            (Fact("gammacaps", "0.1.0"), Fact("torch", "2.13.0"), Fact("seed", "0")),
        ),
    }
    return Page(
        title=f"A network for {EVIL}",
        run="runs/mine",
        verdict=(
            (
                "It holds: ",
                Value("accuracy Clean 0", "86.0%"),
                " are right, and ",
                Value("accuracy PGD-40 0.1", "58.0%"),
            ),
            ("The measurement: PGD-40 on 500 test images.",),
        ),
        contents=contents,
    )
