"""The page's header: its title and the few figures to remember."""

from typing import Any

from gammacaps.reporting.accuracies import attack_name, attacks_asked, under_attack, worst_name
from gammacaps.reporting.content import Fact
from gammacaps.reporting.sections.checks import checks
from gammacaps.reporting.study import Study


def title(study: Study) -> str:
    """Whether it is a gamma-capsule network is for the audit to say, so the title does not."""
    training = study.about.train
    how = "" if training is None else ", trained under attack" if training.robust else ", trained on clean images"
    data = study.about.data.name or study.test.name
    return f"A {study.model.title} for {data}{how}"


def headline(study: Study) -> tuple[Fact, ...]:
    results = study.results
    if results is None:
        return ()
    shown = [Fact("right on clean images", percent(results["clean"]), of_images(results["clean"]))]
    row = hardest(study, results)
    if row is not None:
        asked = attacks_asked(results)
        worst = worst_name(results).lower() + (f" ({asked})" if asked else "")
        name = worst if "attack" not in row else attack_name(row)
        shown.append(Fact(f"right under attack, eps {row['eps']:g}", percent(row), f"{of_images(row)}; {name}"))
    if results["T"] is not None:
        T = f"{results['T']['mean']:.2f}"
        shown.append(Fact("T: how much like a tree", T, "0: no structure, 1: one parent each"))
    judged = [check for check in checks(results) if check.verdict != "skip"]
    if judged:
        good = [check for check in judged if check.verdict == "pass"]
        bad = [check.name for check in judged if check.verdict == "fail"]
        note = f"but not: {', '.join(bad)}" if bad else "of whether to believe these figures"
        shown.append(Fact("checks passed", f"{len(good)} of {len(judged)}", note))
    return tuple(shown)


def hardest(study: Study, results: dict[str, Any]) -> dict[str, Any] | None:
    """The lowest figure under attack at the training's radius, or at the largest that was measured.

    The worst case stands first and so wins a tie.
    """
    attacks, worst = under_attack(results)
    rows = [*worst, *attacks]
    if not rows:
        return None
    own = study.about.train.eps if study.about.train else None
    radii = [row["eps"] for row in rows]
    eps = own if own in radii else max(radii)
    return min((row for row in rows if row["eps"] == eps), key=lambda row: row["accuracy"])


def percent(row: dict[str, Any]) -> str:
    return f"{100 * row['accuracy']:.1f}%"


def of_images(row: dict[str, Any]) -> str:
    """The interval of a share, and how many images it is of."""
    low, high = row["interval"]
    return f"{100 * low:.1f} to {100 * high:.1f}, of {row['images']:,} images"
