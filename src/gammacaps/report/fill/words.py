"""What the network is, in words and in the few figures to remember."""

from typing import Any

from gammacaps.ops import rule_named, rule_names
from gammacaps.report.collect import Collected
from gammacaps.report.content import Fact
from gammacaps.report.fill.figures import WORST, attack_name, checks, under_attack


def title(found: Collected) -> str:
    """Whether it is a gamma-capsule network is for the audit to say, so the title does not."""
    training = found.about.train
    how = "" if training is None else ", trained under attack" if training.robust else ", trained on clean images"
    data = found.about.data.name or found.test.name
    return f"A {found.model.title} for {data}{how}"


def lead(found: Collected) -> str:
    """What it is, on what and how it was trained: one paragraph for whoever knows none of it."""
    channels, height, width = found.model.image_shape
    shade = {1: "grey", 3: "colour"}.get(channels, f"{channels}-channel")
    names = found.test.class_names
    listed = ", ".join(names[:-1]) + f" and {names[-1]}" if 1 < len(names) <= 12 else f"{names[0]} to {names[-1]}"
    words = [
        f"This network looks at {shade} images of {height} × {width} pixels and says which of {len(names)} classes "
        f"each belongs to: {listed}."
    ]
    if found.model.depends_on_neighbours:
        words.append(
            "Its capsules are not shown here: with scale_over='batch', what they say of an image depends on the "
            "images beside it."
        )
    training = found.about.train
    if training is None:
        return " ".join([*words, "How it was trained is not recorded."])
    steps = "" if found.last is None else f" for {found.last['step']:,} steps of {training.batch} images"
    if training.robust:
        words.append(
            f"It was trained under attack{steps}: each time, the images were first changed, by up to "
            f"{training.eps:g} a pixel, to where the network was most wrong, and it then learned from these."
        )
    else:
        words.append(
            f"It was trained on clean images{steps}, never under attack, so that small changes are likely to "
            "mislead it."
        )
    return " ".join(words)


def headline(found: Collected) -> tuple[Fact, ...]:
    results = found.results
    if results is None:
        return ()
    shown = [Fact("right on clean images", percent(results["clean"]), interval(results["clean"]))]
    row = hardest(found, results)
    if row is not None:
        name = WORST.lower() if "attack" not in row else attack_name(row)
        shown.append(Fact(f"right under attack, eps {row['eps']:g}", percent(row), f"{interval(row)}; {name}"))
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


def hardest(found: Collected, results: dict[str, Any]) -> dict[str, Any] | None:
    """The lowest figure under attack at the training's radius, or at the largest that was measured.

    The worst case stands first and so wins a tie.
    """
    attacks, worst = under_attack(results)
    rows = [*worst, *attacks]
    if not rows:
        return None
    own = found.about.train.eps if found.about.train else None
    radii = [row["eps"] for row in rows]
    eps = own if own in radii else max(radii)
    return min((row for row in rows if row["eps"] == eps), key=lambda row: row["accuracy"])


def facts(found: Collected) -> tuple[Fact, ...]:
    model, training = found.model, found.about.train
    shown = [Fact("Weights", f"{sum(p.numel() for p in model.parameters()):,}")]
    if found.totals:
        hidden = ", ".join(f"{n:,}" for name, n in found.totals.items() if name != "class")
        above = f"{found.totals['class']} of classes"
        shown.append(Fact("Capsules", f"{hidden} hidden, {above}" if hidden else above))
    if model.routing is not None:
        titles = {"em": "expectation maximisation", **{name: rule_named(name).title for name in rule_names()}}
        in_words = titles.get(model.routing, "a rule of its own")
        shown.append(Fact("Routing", model.routing.upper(), f"{in_words}, {model.iterations} iterations"))
    shown.append(Fact("Data", found.test.name, f"{len(found.test.labels):,} test images"))
    count = found.about.data.train_images
    if count:
        shown.append(Fact("Trained on", f"{count:,} images"))
    if training is not None:
        steps = training.attack_steps
        attack = f"PGD of {steps} steps" if steps > 1 else "a single step from a random start"
        how = (f"under attack, eps {training.eps:g}", attack) if training.robust else ("on clean images", "")
        shown.append(Fact("Trained", *how))
    if found.last is not None:
        minutes = found.last["seconds"] / 60
        where = str(found.about.machine.get("device_name", ""))
        time = f"{minutes:,.0f} minutes" if minutes >= 2 else f"{60 * minutes:.0f} s"
        shown.append(Fact("Time to train", time, where))
    results = found.results
    if results is not None and results["T"] is not None:
        shown.append(Fact("T-score", f"{results['T']['mean']:.2f}", "0: all couplings equal, 1: a tree"))
        if results["D"]["mean"] is not None:
            alone = results["D"]["by_class"][0]["mean"]
            note = "how much hidden capsules follow the image"
            note += "" if alone is None else f"; {alone:.2f} within the class {results['class_names'][0]}"
            shown.append(Fact("D-score", f"{results['D']['mean']:.2f}", note))
    return tuple(shown)


def percent(row: dict[str, Any]) -> str:
    return f"{100 * row['accuracy']:.1f}%"


def interval(row: dict[str, Any]) -> str:
    low, high = row["interval"]
    return f"{100 * low:.1f} to {100 * high:.1f}"
