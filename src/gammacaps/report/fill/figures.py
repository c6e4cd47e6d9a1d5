"""Scores, checks and the curve over eps, from results.json."""

from typing import Any

from gammacaps.evaluation.table import shown as merged
from gammacaps.evaluation.table import title
from gammacaps.report.collect import Collected
from gammacaps.report.content import Check, Curve, Score, Scores, Series

CHECKS = {  # what the checks of an evaluation are called on the page
    "fgsm-beats-pgd": "One step against many",
    "noise-beats-gradient": "Noise against gradients",
    "black-box-beats-white-box": "From outside against from inside",
    "surrogate-beats-white-box": "Votes alone against all of the routing",
    "falls-with-eps": "Accuracy and the size of the attack",
    "steps-reach-eps": "Reach of the attack's steps",
    "inside-the-ball": "Size of the changes made",
    "longer-attacks": "Longer attacks",
    "attainable-at-0.5": "Everything made grey",
    "planted-examples": "Examples known to be wrong",
    "repeats": "The same image twice",
    "neighbours": "Other images beside it",
}
WORST = "Worst case of all attacks"


def scores(found: Collected, results: dict[str, Any]) -> Scores:
    """Clean first, then radius by radius, the worst case last in each."""
    attacks, worst = under_attack(results)
    rows = [score("Clean", 0.0, results["clean"])]
    for eps in sorted({row["eps"] for row in (*attacks, *worst)}):
        rows += [score(f"{attack_name(row)}, eps {eps:g}", eps, row) for row in attacks if row["eps"] == eps]
        rows += [score(f"{WORST}, eps {eps:g}", eps, row, worst=True) for row in worst if row["eps"] == eps]
    return Scores(tuple(rows), results["clean"]["images"], (*earlier(found, results), *results.get("skipped", ())))


def under_attack(results: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the attacks, AutoAttack's parts as one, and those of the worst case."""
    return measured(merged(results["attacks"])), measured(results.get("worst", ()))


def earlier(found: Collected, figures: dict[str, Any]) -> tuple[str, ...]:
    """A note where the network was trained further, or anew, after the figures were made."""
    then, now = figures.get("trained_steps"), (found.last or {}).get("step")
    if then is None or now is None or then == now:
        return ()
    return (
        f"These figures are of an earlier state: they were made after {then:,} steps of training, and the network "
        f"now has {now:,}.",
    )


def measured(rows: Any) -> list[dict[str, Any]]:
    """Those that have a figure: an attack that ran out of time has none."""
    return [row for row in rows if row["accuracy"] is not None]


def score(name: str, eps: float, row: dict[str, Any], *, worst: bool = False) -> Score:
    low, high = row["interval"]
    return Score(name, eps, row["accuracy"], low, high, worst)


def attack_name(row: dict[str, Any]) -> str:
    """As in PGD-40; its radius is told beside it."""
    name = title(row).rpartition(" eps ")[0]
    return name[0].upper() + name[1:]


def checks(results: dict[str, Any]) -> tuple[Check, ...]:
    return tuple(
        Check(check_name(check["check"]), check["verdict"], number(check["number"]), check["meaning"])
        for check in results.get("checks", ())
    )


def check_name(name: str) -> str:
    if name.startswith("gradient-"):
        return f"Gradients of the loss {name.removeprefix('gradient-')}"
    return CHECKS.get(name, name.replace("-", " ").capitalize())


def number(value: float | None) -> str:
    if value is None:
        return ""
    return "below 0.0001" if 0 < abs(value) < 1e-4 else f"{value:.3g}"


def curve(found: Collected, results: dict[str, Any]) -> Curve | None:
    """Accuracy over eps from clean on, for the worst of all attacks, PGD, a single step and noise."""
    start = [{"eps": 0.0, **results["clean"]}]
    rows: dict[str, list[dict[str, Any]]] = {WORST: measured(results.get("worst", ()))}
    sweep = measured(results.get("sweep", ()))  # PGD at many radii, in place of PGD at the few of the evaluation
    strongest_first = reversed(measured(results["attacks"]))
    for row in (*sweep, *strongest_first):
        if row["attack"] in ("noise", "fgsm", "sweep" if sweep else "pgd"):
            rows.setdefault(attack_name(row), []).append(row)
    series: list[Series] = []
    for name, own in rows.items():
        points = sorted((*start, *(row for row in own if row["eps"] > 0)), key=lambda row: row["eps"])
        line = tuple((row["eps"], row["accuracy"]) for row in points)
        # Of equal lines the stronger attack's is drawn: it says more.
        if len(line) > 1 and line not in [other.points for other in series]:
            series.append(Series(name, line, tuple((row["interval"][0], row["interval"][1]) for row in points)))
    if not series:
        return None
    training = found.about.train
    return Curve(
        "Accuracy as attacks grow",
        "eps: how much each pixel may change",
        "test images answered rightly",
        tuple(series),
        "Each mark is a measurement, the band around the line its 95% interval.",
        levels=(("guessing", 1 / found.model.classes),),
        marks=(("trained at this eps", training.eps),) if training is not None and training.robust else (),
    )
