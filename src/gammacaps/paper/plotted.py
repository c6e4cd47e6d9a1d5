"""The tables of the paper as plots: which figures of which runs, the paper's beside ours."""

from typing import Any

from gammacaps.paper.expected import EPS, expected, of_paper
from gammacaps.paper.plan import (
    ALIKE,
    BEYOND,
    DATA,
    LONG,
    LOOKED_AT,
    PALE,
    RULES,
    SCALED,
    SEEDS,
    SHOWN,
    name_of,
    names_of,
    radii_on,
)
from gammacaps.paper.plots import Dot, DotPlot, Panel, Row
from gammacaps.paper.readings import Records, numbers
from gammacaps.paper.record import Record
from gammacaps.reporting.content import Curve, Series

Plots = dict[str, DotPlot | Curve]  # by the name of their file, without its ending


def all_plots(records: Records) -> Plots:
    """Every plot that has something to show."""
    plots: Plots = {}
    for attack in ("pgd", "fgsm"):
        for data in DATA:
            curve = under_attack(records, attack, data)
            if curve is not None:
                plots[f"{attack}-{data}"] = curve
    made = {"structure": structure(records), "fair": fair(records), "activations": activations(records)}
    return plots | {name: plot for name, plot in made.items() if plot.panels}


def under_attack(records: Records, attack: str, data: str) -> Curve | None:
    """Accuracy over eps: the paper's SDA and RBA dashed, ours of the same colour, and RBA trained under attack too.

    On smallNORB ours are those in the scale that the paper's radii may be told in, as soon as there are such.
    """
    scaled = data == PALE and name_of(SCALED, "sda", "robust") in records
    attacked = "long" if data == SHOWN and LONG in records else "robust"
    papers, lines, some = expected()[attack][data], [], False
    for rule, kind, like in (("sda", attacked, 0), ("rba", "standard", 1), ("rba", "robust", None)):
        if like is not None:
            lines.append(Series(f"{RULES[rule]}, the paper", _points(papers[rule]), like=like, dashed=True))
        record = records.get(name_of(SCALED if scaled else data, rule, kind))
        rows = _rows(record, attack) if record is not None else []
        if record is not None and len(rows) == len(EPS):
            some = True
            points = tuple((eps, row["accuracy"]) for eps, row in zip(EPS, rows, strict=True))
            intervals = tuple((row["interval"][0], row["interval"][1]) for row in rows)
            lines.append(Series(_trained(record), points, intervals, like=2 if like is None else like))
    title = f"{attack.upper()}{'-40' * (attack == 'pgd')} on {DATA[data]}{', eps in deviations' * scaled}"
    return Curve(title, "eps", "Right", tuple(lines), "", height=240) if some else None


def _rows(record: Record, attack: str) -> list[dict[str, Any]]:
    return [row for eps in radii_on(record.figures["data"]) if (row := record.accuracy(attack, eps)) is not None]


def _trained(record: Record) -> str:
    """A network's name in a legend, with how and how long it was trained."""
    train = record.figures["train"]
    at = f", eps {train['eps']:g}" if train["robust"] and record.figures["data"] == PALE else ""
    how = f"under attack{at}" if train["robust"] else "clean"
    return f"{RULES[record.figures['rule']]}, ours, trained {how}, {record.steps:,} steps"


def _points(percents: list[float]) -> tuple[tuple[float, float], ...]:
    return tuple((eps, value / 100) for eps, value in zip(EPS, percents, strict=True))


def structure(records: Records) -> DotPlot:
    """T and D of networks trained on clean images."""
    panels = []
    for data, title in DATA.items():
        rows = []
        for rule in ("rba", "em", "em2", "sda"):
            seeds = _seeds(records, data, rule, "standard")
            if not seeds:
                continue
            paper = of_paper("structure", data, rule)
            dots = [Dot(0, paper["T"]), Dot(2, paper["D"])]
            dots += [Dot(place, numbers(one)[score]) for one in seeds for place, score in ((1, "T"), (3, "D"))]
            rows.append(Row(f"{RULES[rule]}, {_lengths(seeds)}", tuple(dots)))
        if rows:
            panels.append(Panel(title, tuple(rows)))
    series = ("T, the paper", "T, ours (a mark a seed)", "D, the paper", "D, ours (a mark a seed)")
    words = "T near 1: each capsule has one parent. D near 0: no capsule changes with the image. 3k: 3,000 steps."
    return DotPlot("T and D, trained on clean images", "score", series, tuple(panels), words, (0, 2), percent=False)


def fair(records: Records) -> DotPlot:
    """The worst case of networks that were all trained under the same attack, at the radius of training."""
    panels = []
    for data, title in DATA.items():
        rows, eps = [], 0.0
        for rule, kind in (*((rule, "robust") for rule in (*ALIKE, "em")), *((rule, "entropy") for rule in ALIKE)):
            seeds = _seeds(records, data, rule, kind)
            rows += _worst_row(f"{RULES[rule]}{', ce' * (kind == 'entropy')}", 1 if kind == "entropy" else 0, seeds)
            eps = seeds[0].figures["train"]["eps"] if seeds else eps
        for kind in ("gamma", "deep"):
            rows += _worst_row(f"SDA, {kind}", 2, _seeds(records, data, "sda", kind))
        if rows:
            panels.append(Panel(f"{title}, eps {eps:g}", tuple(rows)))
    some = any(name in records for name in BEYOND)
    series = ("each network's own loss", "all on cross-entropy (ce)", *(("beyond the paper",) if some else ()))
    words = "The worst case over the strong attacks, with 95% intervals; a mark a seed. 4k: 4,000 steps."
    return DotPlot("All trained under the same attack: the worst case", "right", series, tuple(panels), words)


def _worst_row(name: str, series: int, seeds: list[Record]) -> list[Row]:
    rows: list[dict[str, Any]] = [row for one in seeds if (row := one.worst(one.figures["train"]["eps"])) is not None]
    dots = tuple(Dot(series, row["accuracy"], *row["interval"]) for row in rows)
    return [Row(f"{name}, {_lengths(seeds)}", dots)] if dots else []


def activations(records: Records) -> DotPlot:
    """How long each class capsule becomes by the input generated for it."""
    sda, rba = (records.get(name) for name in LOOKED_AT)
    shown = [record for record in (sda, rba) if record is not None]
    names = shown[0].figures["results"]["class_names"] if shown else []
    rows = []
    for place, (name, paper) in enumerate(zip(names, expected()["activations"]["rows"], strict=False)):
        dots = [Dot(0, paper[1]), Dot(2, paper[2])]
        for column, record in ((1, sda), (3, rba)):
            if record is not None:
                dots.append(Dot(column, record.figures["generated"]["class"][place]["activation"]))
        rows.append(Row(name, tuple(dots)))
    lengths = [f"{record.steps:,} steps" if record is not None else "not run yet" for record in (sda, rba)]
    series = (
        "SDA, the paper, 15,000 steps",
        f"SDA, ours, under attack, {lengths[0]}",
        "RBA, the paper, 15,000 steps",
        f"RBA, ours, on clean images, {lengths[1]}",
    )
    panels = (Panel("Class capsule", tuple(rows)),) if rows else ()
    return DotPlot("Length by the generated input", "length", series, panels, "", (0, 2), percent=False)


def _seeds(records: Records, data: str, rule: str, kind: str) -> list[Record]:
    return [records[name] for name in names_of((data,), (rule,), kind, SEEDS) if name in records]


def _lengths(seeds: list[Record]) -> str:
    """How long the seeds were trained, in thousands of steps."""
    return "/".join(dict.fromkeys(f"{one.steps / 1000:g}k" for one in seeds))
