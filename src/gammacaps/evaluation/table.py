"""Results as a table that a person can read."""

import textwrap
from typing import Any

from gammacaps.attacks.table import all_attacks, parts_of, title_of
from gammacaps.names import NORM_TITLES
from gammacaps.radius import radius

MARKS = {"pass": "ok  ", "warn": "WARN", "fail": "FAIL", "skip": "-   "}


def table(results: dict[str, Any]) -> str:
    """Accuracies with their 95% intervals, T and D, the checks, and what is to be kept in mind."""
    steps = results.get("trained_steps")
    trained = f", a network trained for {steps:,} steps" if steps else ""
    lines = [f"{results['data']['name']}, {results['data']['images']} test images{trained}", ""]
    lines += accuracies(results)
    if results["T"] is not None:
        lines += ["", f"  {'':<32}{'all classes':>12}{results['class_names'][0]:>12} (class 0)"]
        lines.append(_structure("T (1: a tree)", results["T"], "mean"))
        for layer in results["T"]["layers"]:
            lines.append(_structure(f"  to {layer}", results["T"], layer))
        if results["D"]["mean"] is not None:
            lines.append(_structure("D (reacts to input)", results["D"], "mean"))
    lines += belief(results)
    notes = list(results["skipped"])
    if not results["complete"]:
        notes.append("Not all attacks and checks were done in the time given: the same command goes on from here.")
    if notes:
        lines += ["", *(f"  Note: {note}" for note in notes)]
    return "\n".join(lines)


def accuracies(results: dict[str, Any]) -> list[str]:
    """A line for clean images, for each attack, for the worst case of them and for each radius of the curve."""
    lines = [f"  {'':<32}{'accuracy':>9}   95% interval", accuracy_line("clean", results["clean"])]
    lines += [accuracy_line(title(row), row) for row in shown(results["attacks"])]
    for row in results["worst"]:
        norm = _in_norm(results["attacks"][0]) if results["attacks"] else ""
        name = f"WORST CASE eps {radius(row['eps'])}{norm}"
        lines.append(accuracy_line(name, row) + _winners(row))
    return lines + [accuracy_line(title(row), row) for row in results["sweep"]]


def shown(attacks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row an attack: AutoAttack's parts, each of which goes on where the one before it stopped, become one."""
    wholes = {attack.name: attack.part_of for attack in all_attacks() if attack.part_of is not None}
    rows = []
    for row in attacks:
        whole = wholes.get(row["attack"])
        parts = parts_of(whole) if whole is not None else ()
        ran = [other for other in attacks if other["eps"] == row["eps"] and other["attack"] in parts]
        if whole is None or len(ran) < len(parts):
            rows.append(row)
        elif row is ran[-1]:
            seconds = sum(other["seconds"] for other in ran)
            rows.append({**row, "attack": whole.name, "steps": None, "restarts": 1, "seconds": seconds})
    return rows


def title(row: dict[str, Any]) -> str:
    """An attack's name and radius, as in PGD-40 eps 0.3, or FGSM eps 2 (L2)."""
    return f"{attack_name(row)} eps {radius(row['eps'])}{_in_norm(row)}"


def attack_name(row: dict[str, Any]) -> str:
    """As in PGD-40, or PGD on margins x2 with its restarts."""
    counted = {attack.name for attack in all_attacks() if attack.titled_by_steps}
    name = title_of(row["attack"]) + (f"-{row['steps']}" if row["attack"] in counted else "")
    return f"{name} x{row['restarts']}" if row["restarts"] > 1 else name


def _in_norm(row: dict[str, Any]) -> str:
    norm = row.get("norm", "linf")
    return "" if norm == "linf" else f" ({NORM_TITLES[norm]})"


def accuracy_line(name: str, row: dict[str, Any], wide: int = 32) -> str:
    """A share with its interval, after a name in a column so wide."""
    if row["accuracy"] is None:
        return f"  {name:<{wide}}{'not yet':>9}"
    low, high = row["interval"]
    part = "" if row.get("complete", True) else f"   (of the first {row['images']} images)"
    return f"  {name:<{wide}}{100 * row['accuracy']:>8.1f}%   {100 * low:.1f} to {100 * high:.1f}{part}"


def _winners(row: dict[str, Any]) -> str:
    """The attacks that broke most."""
    order = sorted(row["won"].items(), key=lambda item: -item[1]["broke"])[:3]
    words = ", ".join(f"{title_of(name)} {entry['broke']}" for name, entry in order if entry["broke"])
    return f"   broken by: {words}" if words else ""


def verdict_words(results: dict[str, Any]) -> str:
    """What the checks say together, as a sentence."""
    if "checks" not in results:
        return "These figures were not checked."
    judged = [check["verdict"] for check in results["checks"] if check["verdict"] != "skip"]
    summary = f"{judged.count('pass')} of {len(judged)} checks passed"
    words = {
        "pass": "there is no reason to doubt these figures",
        "warn": "read the warnings",
        "fail": "do not believe them",
    }
    return f"Can these figures be believed? {summary}: {words[results['verdict']]}."


def belief(results: dict[str, Any]) -> list[str]:
    """What the checks say together, and those that did not pass; nothing where there were none."""
    if "checks" not in results:
        return []
    bad = [check for check in results["checks"] if check["verdict"] in ("warn", "fail")]
    lines = ["", f"  {verdict_words(results)}"]
    for check in bad:
        text = textwrap.wrap(f"{check['check']}: {check['meaning']}", 100)
        lines += [f"    {MARKS[check['verdict']] if not n else '    '} {line}" for n, line in enumerate(text)]
    return lines


def _structure(name: str, scores: dict[str, Any], key: str) -> str:
    def of(values: dict[str, Any]) -> str:
        value = values["mean"] if key == "mean" else values["layers"][key]
        return "-" if value is None else f"{value:.3f}"

    return f"  {name:<32}{of(scores):>12}{of(scores['by_class'][0]):>12}"
