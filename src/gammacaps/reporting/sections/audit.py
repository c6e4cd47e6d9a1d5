"""The audit, from audit.json: which capsules are gamma-capsules, and whether there is a parse tree."""

from dataclasses import dataclass, replace
from html import escape
from typing import Any

from gammacaps.auditing.kinds import DEAD, GAMMA, KINDS
from gammacaps.auditing.table import uncertain
from gammacaps.auditing.worth import told
from gammacaps.data.group_names import name_with_classes
from gammacaps.names import VerdictWord
from gammacaps.radius import radius
from gammacaps.reporting.accuracies import earlier
from gammacaps.reporting.content import Curve, Series, Table
from gammacaps.reporting.markup import badge, notes, paragraphs, table
from gammacaps.reporting.markup import curve as curve_figure
from gammacaps.reporting.section import Section
from gammacaps.reporting.sections.hidden import active_in, gamma_of
from gammacaps.reporting.study import Study

SHARE = "share of the capsules"
NEARLY_ALL = 0.99  # of the active capsules with a single parent, which is what the definition asks of all
ANSWERS: dict[VerdictWord, str] = {"pass": "Yes", "warn": "In part", "fail": "No", "skip": "Unknown"}


@dataclass(frozen=True)
class ShownAudit:
    """Whether the network is what the paper defines: one verdict and sentence, what it rests on, and curves."""

    verdict: VerdictWord
    sentence: str
    tau: float  # a capsule counts as active when it is longer
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()
    told: tuple[str, ...] = ()  # what the gamma-capsules are worth together
    notes: tuple[str, ...] = ()


def collect(study: Study) -> ShownAudit | None:
    if study.audit is None:
        return None
    measured = study.results is not None and study.results["T"] is not None
    return shown_audit(study.audit, earlier(study, study.audit), with_t=not measured)


def shown_audit(audit: dict[str, Any], first: tuple[str, ...] = (), *, with_t: bool = True) -> ShownAudit:
    """The audit's own sentence, its tables layer by layer, and how the verdict depends on eps and tau.

    `first` are notes to stand before the audit's own. T is left out where the evaluation tells it, of other images.
    """
    largest, tau = radius(audit["eps"][-1]), f"{audit['tau']:g}"
    tables = [capsules(audit, layer) for layer in audit["layers"]] + [parents(audit, with_t)]
    grows = "How many capsules are of which kind as the attack grows; at eps 0 there is no attack."
    other = f"The same at eps {largest} for other thresholds; the table above takes {tau}."
    curves = (
        over(audit, "over_eps", "eps", Curve("Stronger attacks", "eps", SHARE, (), grows)),
        over(
            audit,
            "over_tau",
            "tau",
            Curve("Other thresholds", "tau", SHARE, (), other, marks=(("used here", audit["tau"]),)),
        ),
    )
    left = not_audited(audit)
    remarks = (
        *first,
        *([f"The definition asks it of every capsule. Not audited: {', '.join(left)}."] if left else ()),
        "Rho and gamma are of the classes that the capsule goes with: a gamma-capsule is one whose gamma is above 0. "
        f"The best gamma, at eps {largest}, is of whichever classes it would serve best under attack, often fewer.",
        "Gamma is an upper bound, since a stronger attack might find worse changes: that a capsule is non-robust is "
        "shown, that it is a gamma-capsule is only not refuted. One whose 95% "
        "interval of gamma holds 0 is not certain.",
    )
    return ShownAudit(answer(audit), audit["verdict"], audit["tau"], tuple(tables), curves, tuple(told(audit)), remarks)


def answer(audit: dict[str, Any]) -> VerdictWord:
    """Yes, if every active capsule is a gamma-capsule with a single parent; no, if not even half are gamma-capsules.

    Where some were not audited, it is yes in part at most.
    """
    total = {kind: sum(layer["counts"][kind] for layer in audit["layers"]) for kind in KINDS}
    active = sum(total.values()) - total[DEAD]
    if not active or 2 * total[GAMMA] < active:
        return "fail"
    single = [row["single_parent"] for row in audit["tree"] if row["single_parent"] is not None]
    whole = total[GAMMA] == active and min(single, default=0.0) >= NEARLY_ALL
    return "pass" if whole and not not_audited(audit) else "warn"


def not_audited(audit: dict[str, Any]) -> list[str]:
    """The layers of capsules, or the rest of those layers, that the audit did not look at, in words."""
    audited = {layer["layer"]: (len(layer["capsules"]), layer["of"]) for layer in audit["layers"]}
    names = dict.fromkeys(name for row in audit["tree"] for name in (row["from"], row["to"]))
    words = []
    for name in names:
        looked, count = audited.get(name, (0, 0))
        if name not in audited:
            words.append(f"layer {name}")
        elif looked < count:
            words.append(f"{count - looked:,} of the {count:,} capsules of layer {name}")
    return words


def capsules(audit: dict[str, Any], layer: dict[str, Any]) -> Table:
    """A row a capsule: its kind, how often it is active, its classes, rho beside chance, gamma at each eps with its
    interval at the largest, the best gamma."""
    names, data = audit["class_names"], audit["data"]["name"]
    has_taus = "gamma_capsule_at" in layer["capsules"][0]
    has_chance, has_interval = ("chance" in layer["capsules"][0], "gamma_interval" in layer["capsules"][0])
    rows = tuple(
        (
            str(row["capsule"]),
            row["kind"] + (", not certain" if uncertain(row) else ""),
            active_in(layer["layer"], row),
            name_with_classes(row["classes"], names, data) if row["classes"] and row["kind"] != DEAD else "–",
            f"{row['rho']:.2f}",
            *([f"{row['chance']:.2f}"] if has_chance else ()),
            *(f"{value:.2f}" for value in (row["gamma"] or ())[:-1]),
            *(gamma_of(layer["layer"], row["capsule"], value) for value in (row["gamma"] or ())[-1:]),
            *("–" for _ in audit["eps"] if row["gamma"] is None),
            *([between(row.get("gamma_interval"))] if has_interval else ()),
            "–" if row["gamma_any"] is None else f"{row['gamma_any']:.2f}",
            *([", ".join(f"{tau:g}" for tau in row["gamma_capsule_at"]) or "–"] if has_taus else ()),
        )
        for row in layer["capsules"]
    )
    some = "" if len(rows) == layer["of"] else f" ({len(rows)} of {layer['of']:,}, drawn at random)"
    chance = ("by chance",) if has_chance else ()
    interval = (f"95% interval, eps {radius(audit['eps'][-1])}",) if has_interval else ()
    gammas = (f"gamma, eps {radius(eps)}" for eps in audit["eps"])
    head = ("Capsule", "Kind", "Active in", "Goes with", "rho", *chance, *gammas, *interval, "best gamma")
    head += ("gamma-capsule at tau",) if has_taus else ()
    return Table(f"The capsules of layer {layer['layer']}{some}", head, rows)


def between(interval: list[float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def parents(audit: dict[str, Any], with_t: bool) -> Table:
    """A row a routed layer: does each active capsule choose a single parent?"""

    def share(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.0f}%"

    rows = tuple(
        (
            f"{row['from']} to {row['to']}",
            share(row["single_parent"]),
            share(row["margin"]),
            *([f"{row['T']:.2f}"] if with_t else ()),
        )
        for row in audit["tree"]
    )
    head = ("From layer to layer", "Have a single parent", "Lead over the second", *(["T"] if with_t else ()))
    return Table("How active capsules choose their parents", head, rows)


def over(audit: dict[str, Any], key: str, x: str, empty: Curve) -> Curve:
    """A curve filled with the share of each kind of capsule, over all layers that were audited."""
    places = [row[x] for row in audit["layers"][0][key]]
    count = sum(len(layer["capsules"]) for layer in audit["layers"])
    series = []
    for kind in KINDS:
        sums = [sum(layer[key][place][kind] for layer in audit["layers"]) for place in range(len(places))]
        if any(sums):
            series.append(Series(kind, tuple((at, many / count) for at, many in zip(places, sums, strict=True))))
    return replace(empty, series=tuple(series))


def draw(shown: ShownAudit) -> str:
    intro = paragraphs(
        "The definition asks three things. Each capsule stands for a useful feature, one that goes with some classes "
        "and not with others: its rho is above what chance would give. It stays useful under attack: its gamma, the "
        "same figure with every image changed for the worst, is above 0. And each active capsule chooses a single "
        f"parent. Here a capsule counts as active when it is longer than tau = {shown.tau:g}.",
    )
    sign = badge(shown.verdict, ANSWERS[shown.verdict])
    verdict = f'<p class="verdict">{sign} <strong>{escape(shown.sentence)}</strong></p>'
    parts = "".join(table(each) for each in shown.tables)
    curves = f'<div class="sides">{"".join(curve_figure(each) for each in shown.curves)}</div>' if shown.curves else ""
    words = paragraphs(*shown.told)
    return intro + verdict + words + THE_KINDS + parts + curves + notes(shown.notes)


THE_KINDS = """<div class="aside"><h3>The four kinds</h3><dl>
<dt>Gamma-capsule</dt><dd>Useful, and still so under attack: rho is above chance, and gamma above 0.</dd>
<dt>Non-robust</dt><dd>Useful, but an attack can undo it: rho is above chance, gamma is not above 0.</dd>
<dt>Not useful</dt><dd>Active, but rho is not above chance. Mostly these are active in every image: their length says
nothing, their direction may.</dd>
<dt>Dead</dt><dd>Active in none of the test images.</dd>
</dl></div>"""


AUDIT = Section("audit", "Is it a gamma-capsule network?", collect, draw, needs=("capsules",), made_by="audit")
