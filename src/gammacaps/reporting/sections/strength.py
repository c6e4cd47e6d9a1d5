"""Accuracy as attacks grow: a curve over eps."""

from typing import Any

from gammacaps.attacks.table import all_attacks
from gammacaps.reporting.accuracies import attack_name, measured, worst_name
from gammacaps.reporting.content import Curve, Series
from gammacaps.reporting.markup import curve as curve_figure
from gammacaps.reporting.markup import paragraphs
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Study


def collect(study: Study) -> Curve | None:
    return None if study.results is None else curve(study, study.results)


def curve(study: Study, results: dict[str, Any]) -> Curve | None:
    """Accuracy over eps from clean on, for the worst of all attacks, PGD, a single step, noise and users' attacks."""
    start = [{"eps": 0.0, **results["clean"]}]
    rows: dict[str, list[dict[str, Any]]] = {worst_name(results): measured(results.get("worst", ()))}
    sweep = measured(results.get("sweep", ()))  # PGD at many radii, in place of PGD at the few of the evaluation
    strongest_first = reversed(measured(results["attacks"]))
    left_out = {attack.name for attack in all_attacks() if not attack.in_curve} | ({"pgd"} if sweep else set())
    for row in (*sweep, *strongest_first):
        if row["attack"] not in left_out:
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
    eps = study.trained_at
    return Curve(
        "Accuracy as attacks grow",
        "eps: how much each pixel may change",
        "test images answered rightly",
        tuple(series),
        "Each mark is a measurement, the band around the line its 95% interval.",
        levels=(("guessing", 1 / study.model.classes),),
        marks=() if eps is None else (("trained at this eps", eps),),
        accuracies=True,
    )


def draw(shown: Curve) -> str:
    intro = paragraphs(
        "As eps grows the attack may change more, and every network ends at or below guessing: from eps 0.5 on, "
        "any image can be turned into plain grey. What matters is how long the line stays up.",
    )
    return intro + curve_figure(shown)


STRENGTH = Section("strength", "Stronger and stronger attacks", collect, draw, needs=("results",))
