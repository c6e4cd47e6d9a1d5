"""The figures of results.json as the page names them: for the header, the table of scores and the curve."""

from typing import Any

from gammacaps.attacks.table import suites
from gammacaps.evaluation.table import shown as merged
from gammacaps.evaluation.table import title
from gammacaps.reporting.study import Study

ALL = "strong"  # the suite that holds every attack


def worst_name(results: dict[str, Any]) -> str:
    """What the worst case is of: of all attacks only where all were run."""
    ran = {row["attack"] for row in results["attacks"]}
    if set(suites()[ALL]) <= ran:
        return "Worst case of all attacks"
    count = len({row["attack"] for row in merged(results["attacks"])})
    return f"Worst case of {count} attacks" if count > 1 else "Worst case of one attack"


def attacks_asked(results: dict[str, Any]) -> str:
    """The suites and attacks that an evaluation was asked for, as in "standard"; nothing where it does not say."""
    return ", ".join(map(str, results["settings"].get("attacks", ())))


def under_attack(results: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the attacks, AutoAttack's parts as one, and those of the worst case."""
    return measured(merged(results["attacks"])), measured(results.get("worst", ()))


def measured(rows: Any) -> list[dict[str, Any]]:
    """Those that have a figure: an attack that ran out of time has none."""
    return [row for row in rows if row["accuracy"] is not None]


def attack_name(row: dict[str, Any]) -> str:
    """As in PGD-40; its radius is told beside it."""
    name = title(row).rpartition(" eps ")[0]
    return name[0].upper() + name[1:]


def name_of(row: dict[str, Any], results: dict[str, Any]) -> str:
    """The attack's name, or that of the worst case."""
    return attack_name(row) if "attack" in row else worst_name(results)


def earlier(study: Study, figures: dict[str, Any]) -> tuple[str, ...]:
    """A note where the network was trained further, or anew, after the figures were made."""
    then, now = figures.get("trained_steps"), (study.last or {}).get("step")
    if then is None or now is None or then == now:
        return ()
    return (
        f"These figures are of an earlier state: they were made after {then:,} steps of training, and the network "
        f"now has {now:,}.",
    )
