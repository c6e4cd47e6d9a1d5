"""A report with something in every section, and names that would break a careless page."""

import io
from dataclasses import replace

import numpy as np
from PIL import Image

from gammacaps.reporting.cards import CapsuleCard
from gammacaps.reporting.content import Curve, Fact, Figure, Picture, Series, Table
from gammacaps.reporting.page import Page
from gammacaps.reporting.sections.audit import ShownAudit
from gammacaps.reporting.sections.checks import ShownCheck
from gammacaps.reporting.sections.classes import ClassCards
from gammacaps.reporting.sections.hidden import Galleries, Gallery
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


def capsule(name: str, seed: int, length: float, *serves: tuple[str, float], note: str = "") -> CapsuleCard:
    generated = Picture(png(seed), f"Generated input of {name}")
    return CapsuleCard(name, generated, length, serves, Picture(png(seed + 50), f"A training image: {name}"), note)


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
    rows = [Score("clean", 0.0, 0.86, 0.83, 0.89)]
    rows += [
        Score(f"{name}, eps {e:g}", e, y, max(0, y - 0.04), y + 0.04)
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
    contents = {
        "network": About(
            "A gamma-capsule network that tells 4 kinds of images apart, trained for 1,200 steps under attack.",
            (Fact("Weights", "347,152"), Fact("Routing", "sda", "scaled-distance agreement, 3 iterations")),
        ),
        "scores": Scores(tuple(rows), 500, ("40 steps of 0.001 reach 0.04, less than eps 0.3.",)),
        "checks": (
            ShownCheck(
                "More steps help no more", "pass", "0.4 points", "Ten times the steps lower the accuracy by 0.4 points."
            ),
            ShownCheck(
                "The attack crosses its ball", "warn", "0.04 of 0.3", "The steps are too short for the largest eps."
            ),
            ShownCheck(
                "Noise does less than an attack", "fail", "12 points", "Random noise does more harm than the attack."
            ),
        ),
        "strength": Curve(
            "Accuracy and the size of the attack",
            "eps",
            "images answered rightly",
            series,
            "The bands are 95% intervals.",
            levels=(("guessing", 0.25),),
            marks=(("trained at", 0.1),),
        ),
        "classes": ClassCards(
            tuple(
                capsule(name, place, 0.9 - 0.2 * place, (name, 0.9 - 0.2 * place)) for place, name in enumerate(CLASSES)
            )
        ),
        "hidden": Galleries(
            (
                Gallery(
                    "hidden 1",
                    (
                        *(
                            capsule(f"Capsule {k}", 20 + k, 0.8, (CLASSES[k % 4], 0.7), (CLASSES[0], 0.2))
                            for k in range(6)
                        ),
                        capsule("Capsule 6", 26, 0.02, note="nothing was found that activates it"),
                    ),
                ),
            ),
            audited=True,
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
            )
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
            Figure("Confusion", Picture(png(99, 300, 900), "Confusion matrix"), "Rows are true classes."),
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
        headline=(
            Fact("right on clean images", "86.0%", "83.0 to 89.0, 500 images"),
            Fact("right under PGD-40, eps 0.1", "58.0%", "54.0 to 62.0"),
            Fact("T, how near to a tree", "0.48", "0: no structure, 1: a tree"),
        ),
        contents=contents,
    )
