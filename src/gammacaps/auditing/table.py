"""An audit in words: one sentence, one table, and several audits side by side."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gammacaps.auditing.kinds import DEAD, GAMMA, KINDS, NON_ROBUST, NOT_USEFUL, SOME_SET
from gammacaps.auditing.worth import is_strong, told
from gammacaps.data.group_names import name_of_classes
from gammacaps.evaluation.interval import two_places
from gammacaps.radius import radius

WIDE = 118  # letters of a line of words
NAMED = 3  # capsules by their names, in a sentence
NOTE = (
    "Note: gamma is an upper bound, for a stronger attack might find worse changes: 'non-robust' is shown by changes\n"
    "that were found, 'gamma-capsule' is what this attack could not refute."
)


def verdict(results: dict[str, Any]) -> str:
    """One sentence: how many active capsules are gamma-capsules, which of them not for certain, and of the others."""
    total, eps = totals(results), results["eps"][-1]
    names = [layer["layer"] for layer in results["layers"]]
    which = "hidden" if all(name.startswith("hidden") for name in names) else " and ".join(names)
    words = f"{total[GAMMA]} of {active(total)} active {which} capsules are gamma-capsules at eps {radius(eps)}"
    words += f" and tau {results['tau']:g}" + (" in a strong audit" if is_strong(results) else "")
    open_ones, named = _not_certain(results)
    others = ", ".join(f"{total[kind]} {kind}" for kind in (NON_ROBUST, NOT_USEFUL) if total[kind])
    words += f", {open_ones} of them not certain" if open_ones else ""
    words += f" ({bracket})" if (bracket := "; ".join(part for part in (named, others) if part)) else ""
    words += f", {total[DEAD]} of {active(total) + total[DEAD]} are dead" if total[DEAD] else ""
    at_others = [row for layer in results["layers"] for row in layer["capsules"] if row["gamma_capsule_at"]]
    more = len(at_others) - total[GAMMA]
    words += f"; {more} more {'is one' if more == 1 else 'are'} at another tau" if more else ""
    single = single_parent(results)
    return words + ("." if single is None else f"; {100 * single:.0f}% of active capsules have a single parent.")


def uncertain(row: dict[str, Any]) -> bool:
    """Whether so few images leave open if it is a gamma-capsule: the 95% interval of its gamma holds 0."""
    interval = row.get("gamma_interval")
    return row["kind"] == GAMMA and interval is not None and interval[0] <= 0 <= interval[1]


def _not_certain(results: dict[str, Any]) -> tuple[int, str]:
    """How many gamma-capsules are none for certain, and the first of them by name with the reason."""
    several = len(results["layers"]) > 1
    names = [
        f"{layer['layer']} capsule {row['capsule']}" if several else f"capsule {row['capsule']}"
        for layer in results["layers"]
        for row in layer["capsules"]
        if uncertain(row)
    ]
    if not names:
        return 0, ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    holds = "its interval holds" if len(names) == 1 else "their intervals hold"
    return len(names), f"{', '.join(names[:NAMED])}{more}: {holds} 0"


def table(results: dict[str, Any]) -> str:
    """The sentence, every capsule's figures, the curves over eps and tau, and the tree."""
    data = results["data"]
    strong = "; strong audit" if is_strong(results) else ""
    lines = [f"{data['name']}, {data['images']} test images; active: longer than {results['tau']:g}{strong}", ""]
    lines.append(results["verdict"])
    for layer in results["layers"]:
        lines += ["", *_capsules(layer, results), "", *_counts(layer, "eps"), "", *_counts(layer, "tau")]
        some = sum(bool(row["gamma_capsule_at"]) for row in layer["capsules"])
        lines.append(f"  {some} of {len(layer['capsules'])} are gamma-capsules at one of these tau or more")
    lines += ["", f"{'parents':<24}{'T':>7}{'single parent':>15}{'margin':>8}"]
    for row in results["tree"]:
        name = f"  {row['from']} to {row['to']}"
        lines.append(f"{name:<24}{row['T']:>7.3f}{_percent(row['single_parent']):>15}{two_places(row['margin']):>8}")
    for sentence in told(results):
        lines += ["", textwrap.fill(sentence, WIDE)]
    return "\n".join([*lines, "", NOTE])


def compare(audits: Sequence[dict[str, Any]]) -> str:
    """Several audits in one table: a line for each run and eps, eps 0 being the clean images."""
    if not audits:
        return "There is nothing to compare."
    wide = max(len(run_name(results)) for results in audits) + 2
    lines = [
        f"{'run':<{wide}}{'routing':<9}{'trained':<14}{'eps':>6}{'active':>8}{'useful':>8}{'gamma-capsules':>16}"
        f"{'some set':>10}{'mean gamma':>12}{'some tau':>10}{'T':>7}{'single parent':>15}"
    ]
    for results in audits:
        lines += ["", *_compared(results, wide)]
    first = audits[0]
    if any(_measured_by(a) != _measured_by(first) for a in audits):
        words = "Note: these audits differ in tau, in their images or in how strong they are"
        lines += ["", f"{words}, so their figures are no fair comparison."]
    return "\n".join([*lines, "", NOTE])


def _measured_by(results: dict[str, Any]) -> tuple[Any, ...]:
    return results["tau"], results["data"], is_strong(results)


def totals(results: dict[str, Any]) -> dict[str, int]:
    """How many capsules of each kind there are in the audited layers, at the largest eps."""
    return {kind: sum(layer["counts"][kind] for layer in results["layers"]) for kind in KINDS}


def active(total: dict[str, int]) -> int:
    return sum(total.values()) - total[DEAD]


def single_parent(results: dict[str, Any]) -> float | None:
    """The share of active capsules, over all layers, whose largest coupling is above 1/2."""
    rows = [row for row in results["tree"] if row["active"]]
    count = sum(row["active"] for row in rows)
    return sum(row["active"] * row["single_parent"] for row in rows) / count if count else None


def run_name(results: dict[str, Any]) -> str:
    return Path(results.get("run", "network")).name


def _capsules(layer: dict[str, Any], results: dict[str, Any]) -> list[str]:
    """A line for each capsule."""
    rows, eps = layer["capsules"], results["eps"]
    lines = [] if len(rows) == layer["of"] else [f"{len(rows)} of the {layer['of']} capsules of {layer['layer']}:"]
    gammas = "".join(f"{'gamma ' + format(e, 'g'):>12}" for e in eps)
    lines.append(f"{layer['layer']:<16}{'active':>7}{'rho':>7}   {'95% interval':<15}{'chance':>6}{gammas}   kind")
    return lines + [_capsule(row, results, len(eps)) for row in rows]


def _capsule(row: dict[str, Any], results: dict[str, Any], radii: int) -> str:
    def named(classes: list[int]) -> str:
        return name_of_classes(classes, results["class_names"], results["data"]["name"])

    line = f"  {row['capsule']:<14}{_percent(row['active']):>7}"
    if row["kind"] == DEAD:
        return line + " " * (31 + 12 * radii) + f"   {DEAD}"
    low, high = row["rho_interval"]
    line += f"{row['rho']:>7.2f}   {f'{low:.2f} to {high:.2f}':<15}{row['chance']:>6.2f}"
    line += "".join(f"{two_places(value):>12}" for value in row["gamma"] or [None] * radii) + f"   {row['kind']}"
    if row["gamma"] is None:
        return line
    line += f": {named(row['classes'])}"
    low, high = row["gamma_interval"]
    if uncertain(row):
        line += f" (not certain: gamma from {low:.2f} to {high:.2f})"
    if row["kind"] == NON_ROBUST and row["gamma_any"] > 1e-9:
        line += f" (but {row['gamma_any']:.2f} for {named(row['gamma_any_classes'])})"
    return line


def _counts(layer: dict[str, Any], over: str) -> list[str]:
    """The numbers of each kind, a line for each eps or tau."""
    lines = [f"  {'over ' + over:<10}" + "".join(f"{kind:>15}" for kind in KINDS) + f"{SOME_SET:>35}"]
    for row in layer[f"over_{over}"]:
        lines.append(f"  {row[over]:<10g}" + "".join(f"{row[kind]:>15}" for kind in KINDS) + f"{row[SOME_SET]:>35}")
    return lines


def _compared(results: dict[str, Any], wide: int) -> list[str]:
    """A run's lines; what does not depend on eps stands in the last."""
    total = totals(results)
    rows = [row for layer in results["layers"] for row in layer["capsules"]]
    useful = [row for row in rows if row["gamma"] is not None]
    trained = {True: "under attack", False: "standard", None: "-"}[results.get("trained_under_attack")]
    about = f"{run_name(results):<{wide}}{results.get('model', {}).get('routing', '-'):<9}{trained:<14}"
    lines = []
    for place, eps in enumerate((0.0, *results["eps"])):
        counted = [layer["over_eps"][place] for layer in results["layers"]]
        values = [row["gamma"][place - 1] if place else row["rho"] for row in useful]
        line = f"{about if place == 0 else '':<{wide + 23}}{eps:>6g}{active(total):>8}{len(useful):>8}"
        line += f"{sum(f[GAMMA] for f in counted):>16}{sum(f[SOME_SET] for f in counted):>10}"
        lines.append(line + f"{two_places(sum(values) / len(values) if values else None):>12}")
    T = sum(row["T"] for row in results["tree"]) / len(results["tree"])
    lines[-1] += f"{sum(bool(row['gamma_capsule_at']) for row in rows):>10}{T:>7.3f}"
    lines[-1] += f"{_percent(single_parent(results)):>15}"
    return lines


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%"
