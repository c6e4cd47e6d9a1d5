"""The audit, from audit.json: which capsules are gamma-capsules, and whether there is a parse tree."""

from dataclasses import replace
from typing import Any

from gammacaps.audit.verdict import DEAD, GAMMA, KINDS
from gammacaps.report.content import Audit, Curve, Series, Table, Verdict

SHARE = "share of the capsules"
NEARLY_ALL = 0.99  # of the active capsules with a single parent, which is what the definition asks of all


def audit(found: dict[str, Any], first: tuple[str, ...] = ()) -> Audit:
    """The audit's own sentence, its tables layer by layer, and how the verdict hangs on eps and tau.

    `first` are notes to stand before the audit's own.
    """
    radius, tau = f"{found['eps'][-1]:g}", f"{found['tau']:g}"
    tables = [capsules(found, layer) for layer in found["layers"]] + [parents(found)]
    grows = "How many capsules are of which kind as the attack grows; at eps 0 there is no attack."
    other = f"The same at eps {radius} for other thresholds; the table above takes {tau}."
    curves = (
        over(found, "over_eps", "eps", Curve("Stronger attacks", "eps", SHARE, (), grows)),
        over(
            found,
            "over_tau",
            "tau",
            Curve("Other thresholds", "tau", SHARE, (), other, marks=(("used here", found["tau"]),)),
        ),
    )
    left = not_audited(found)
    notes = (
        *first,
        *([f"The definition asks it of every capsule. Not audited: {', '.join(left)}."] if left else ()),
        "Rho and gamma are of the classes that the capsule goes with: a gamma-capsule is one whose gamma is above 0. "
        f"The best gamma, at eps {radius}, is of whichever classes it would serve best under attack, often fewer.",
        "Gamma is an upper bound, since a stronger attack might find worse changes: that a capsule is non-robust is "
        "shown, that it is a gamma-capsule is only not refuted. Uncertain is one whose "
        "95% interval of gamma holds 0.",
    )
    return Audit(answer(found), found["verdict"], found["tau"], tuple(tables), curves, notes)


def answer(found: dict[str, Any]) -> Verdict:
    """Yes, if every active capsule is a gamma-capsule with a single parent; no, if not even half are gamma-capsules.

    Where some were not audited, it is yes in part at most.
    """
    total = {kind: sum(layer["counts"][kind] for layer in found["layers"]) for kind in KINDS}
    active = sum(total.values()) - total[DEAD]
    if not active or 2 * total[GAMMA] < active:
        return "fail"
    single = [row["single_parent"] for row in found["tree"] if row["single_parent"] is not None]
    whole = total[GAMMA] == active and min(single, default=0.0) >= NEARLY_ALL
    return "pass" if whole and not not_audited(found) else "warn"


def not_audited(found: dict[str, Any]) -> list[str]:
    """The layers of capsules, or the rest of those layers, that the audit did not look at, in words."""
    audited = {layer["layer"]: (len(layer["capsules"]), layer["of"]) for layer in found["layers"]}
    names = dict.fromkeys(name for row in found["tree"] for name in (row["from"], row["to"]))
    words = []
    for name in names:
        looked, count = audited.get(name, (0, 0))
        if name not in audited:
            words.append(f"layer {name}")
        elif looked < count:
            words.append(f"{count - looked:,} of the {count:,} capsules of layer {name}")
    return words


def capsules(found: dict[str, Any], layer: dict[str, Any]) -> Table:
    """A row a capsule: its kind, how often it is active, its classes, rho beside chance, gamma at each eps with its
    interval at the largest, the best gamma."""
    names = found["class_names"]
    has_chance, has_interval = ("chance" in layer["capsules"][0], "gamma_interval" in layer["capsules"][0])
    rows = tuple(
        (
            str(row["capsule"]),
            row["kind"] + (", uncertain" if uncertain(row) else ""),
            f"{100 * row['active']:.0f}%",
            (", ".join(names[k] for k in row["classes"]) if row["kind"] != DEAD else "") or "–",
            f"{row['rho']:.2f}",
            *([f"{row['chance']:.2f}"] if has_chance else ()),
            *(f"{value:.2f}" for value in row["gamma"] or ()),
            *("–" for _ in found["eps"] if row["gamma"] is None),
            *([between(row.get("gamma_interval"))] if has_interval else ()),
            "–" if row["gamma_any"] is None else f"{row['gamma_any']:.2f}",
        )
        for row in layer["capsules"]
    )
    some = "" if len(rows) == layer["of"] else f" ({len(rows)} of {layer['of']:,}, drawn at random)"
    chance = ("by chance",) if has_chance else ()
    interval = (f"95% interval, eps {found['eps'][-1]:g}",) if has_interval else ()
    gammas = (f"gamma, eps {eps:g}" for eps in found["eps"])
    head = ("Capsule", "Kind", "Active in", "Goes with", "rho", *chance, *gammas, *interval, "best gamma")
    return Table(f"The capsules of layer {layer['layer']}{some}", head, rows)


def uncertain(row: dict[str, Any]) -> bool:
    """Whether so few images leave open if it is a gamma-capsule."""
    interval = row.get("gamma_interval")
    return row["kind"] == GAMMA and interval is not None and interval[0] <= 0 <= interval[1]


def between(interval: list[float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def parents(found: dict[str, Any]) -> Table:
    """A row a routed layer: does each active capsule choose a single parent?"""

    def share(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.0f}%"

    rows = tuple(
        (f"{row['from']} to {row['to']}", share(row["single_parent"]), share(row["margin"]), f"{row['T']:.2f}")
        for row in found["tree"]
    )
    head = ("From layer to layer", "Have a single parent", "Lead over the second", "T")
    return Table("How active capsules choose their parents", head, rows)


def over(found: dict[str, Any], key: str, x: str, empty: Curve) -> Curve:
    """A curve filled with the share of each kind of capsule, over all layers that were audited."""
    places = [row[x] for row in found["layers"][0][key]]
    count = sum(len(layer["capsules"]) for layer in found["layers"])
    series = []
    for kind in KINDS:
        sums = [sum(layer[key][place][kind] for layer in found["layers"]) for place in range(len(places))]
        if any(sums):
            series.append(Series(kind, tuple((at, many / count) for at, many in zip(places, sums, strict=True))))
    return replace(empty, series=tuple(series))


def kind_of(found: dict[str, Any] | None, layer: str, capsule: int) -> str:
    """What the audit calls a capsule; nothing where it did not look at it."""
    for audited in found["layers"] if found else ():
        if audited["layer"] == layer:
            return next((row["kind"] for row in audited["capsules"] if row["capsule"] == capsule), "")
    return ""
