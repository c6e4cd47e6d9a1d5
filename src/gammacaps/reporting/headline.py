"""The page's header: its title and a verdict in two sentences, of the network first and of the measurement second."""

import shlex
from typing import Any

from gammacaps.auditing.kinds import DEAD, GAMMA, KINDS
from gammacaps.auditing.table import uncertain
from gammacaps.radius import radius
from gammacaps.reporting.accuracies import attack_name, earlier, name_of, under_attack
from gammacaps.reporting.apart import HOLDS
from gammacaps.reporting.content import Sentence, Value
from gammacaps.reporting.sections.checks import believed, failed
from gammacaps.reporting.shares import CLEAN, accuracy, interval
from gammacaps.reporting.study import Study
from gammacaps.runs.chosen_by import chosen_by


def title(study: Study) -> str:
    """Whether it is a gamma-capsule network is for the audit to say, so the title does not."""
    data = study.about.data.name or study.test.name
    how = trained(study)
    return f"A {study.model.title} for {data}{f', {how}' if how else ''}"


def trained(study: Study) -> str:
    """How it was trained, in a few words; nothing where that is not known."""
    training = study.about.train
    return "" if training is None else "trained under attack" if training.robust else "trained on clean images"


def headline(study: Study) -> tuple[Sentence, ...]:
    """What the network is worth, then what the measurement is worth; what is missing says how to make it."""
    results = study.results
    capsules = gamma_capsules(study.audit)
    chosen = chosen_by(study.about.train, study.test.name)
    if results is None:
        run = shlex.quote(str(study.run))
        unknown = f"How often it is right was not measured yet: run gammacaps evaluate {run} and make the report again."
        if not capsules:
            return ((unknown,),)
        audited = ("By the audit, ", *capsules, ".")
        return ((unknown,), audited, (chosen,)) if chosen else ((unknown,), audited)
    row = hardest(study, results)
    words = network(study, results, row)
    first = (*words, "; ", *capsules, ".") if capsules else (*words, ".")
    notes = (*earlier(study, results), *([chosen] if chosen else []))
    return (first, measurement(results, row), *((note,) for note in notes))


def network(study: Study, results: dict[str, Any], row: dict[str, Any] | None) -> Sentence:
    """How often it is right, clean and under attack, and in a word what that means."""
    clean = results["clean"]["accuracy"]
    right = accuracy(CLEAN, 0.0, clean)
    guessing = 1 / study.model.classes
    if row is None:
        return ("Of clean test images it is right on ", right, "; under attack it was not measured")
    if clean <= guessing:
        word = "It has not learned its task: "
    elif row["accuracy"] <= guessing:
        word = "It breaks under attack: "
    elif failed(results):
        word = "Whether it holds under attack is not known: "
    else:
        word = "It holds under attack: " if row["accuracy"] >= HOLDS * clean else "It gives way under attack: "
    attacked = accuracy(name_of(row, results), row["eps"], row["accuracy"])
    changed = f" still are after an attack that may change each pixel by {radius(row['eps'])}"
    return (word, right, " of the test images are right, and ", attacked, changed, *further(results, row))


def further(results: dict[str, Any], row: dict[str, Any]) -> Sentence:
    """The same at the largest radius, where it was measured at a larger one: nobody is to overlook where it ends."""
    attacks, worst = under_attack(results)
    rows = [other for other in (*worst, *attacks) if other["eps"] > row["eps"]]
    if not rows:
        return ()
    eps = max(other["eps"] for other in rows)
    last = min((other for other in rows if other["eps"] == eps), key=lambda other: other["accuracy"])
    return (" (", accuracy(name_of(last, results), eps, last["accuracy"]), f" by {radius(eps)})")


def gamma_capsules(audit: dict[str, Any] | None) -> Sentence:
    """How many of the active capsules that were audited are gamma-capsules; nothing without an audit."""
    if audit is None:
        return ()
    total = {kind: sum(layer["counts"][kind] for layer in audit["layers"]) for kind in KINDS}
    active = sum(total.values()) - total[DEAD]
    hidden = "hidden " if all(layer["layer"] != "class" for layer in audit["layers"]) else ""
    if not active:
        return (f"none of its {total[DEAD]} {hidden}capsules is active in any image",)
    many, of = Value("gamma-capsules", str(total[GAMMA])), Value("active capsules", str(active))
    are = "is a gamma-capsule" if total[GAMMA] == 1 else "are gamma-capsules"
    doubtful = sum(uncertain(row) for layer in audit["layers"] for row in layer["capsules"])
    end = f", {doubtful} of them not certain" if doubtful else ""
    return (many, " of ", of, f" active {hidden}capsules {are}{end}")


def measurement(results: dict[str, Any], row: dict[str, Any] | None) -> Sentence:
    """How far these figures are to be believed."""
    images = f"{results['clean']['images']:,} test images"
    if row is None:
        low, high = results["clean"]["interval"]
        return (f"Measured on {images} (95% interval {interval(low, high)}).",)
    span = interval(*row["interval"])
    if "attack" in row:
        what = f"The measurement: {attack_name(row)} on {images}, 95% interval {span}"
    else:
        attacks = len({attack_name(other) for other in under_attack(results)[0] if other["eps"] == row["eps"]})
        several = f"{attacks} attacks" if attacks > 1 else "one attack"
        what = f"The measurement: the worst case of {several} on {images}, 95% interval {span}"
    return (what, "; ", believed(results), ".")


def hardest(study: Study, results: dict[str, Any]) -> dict[str, Any] | None:
    """The lowest figure under attack at the training's radius, or at the largest that was measured.

    The worst case stands first and so wins a tie.
    """
    attacks, worst = under_attack(results)
    rows = [*worst, *attacks]
    if not rows:
        return None
    own = study.about.train.eps if study.about.train and study.about.train.norm == "linf" else None
    radii = [row["eps"] for row in rows]
    eps = own if own in radii else max(radii)
    return min((row for row in rows if row["eps"] == eps), key=lambda row: row["accuracy"])
