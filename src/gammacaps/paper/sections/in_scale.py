"""smallNORB in pixels, and with each image scaled to mean 0 and deviation 1, beside the paper's Table 2."""

from pathlib import Path

from gammacaps.paper.expected import EPS, expected
from gammacaps.paper.plan import PALE, SCALED, name_of, radii_on
from gammacaps.paper.readings import Records
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import heading, missing, percent, table

WORDS = (
    "The paper's figures on smallNORB do not fit its radii in pixels (see above). They may fit images that are scaled "
    "one by one to mean 0 and deviation 1. Here networks are trained, attacked and measured in that scale: "
    "eps is then in deviations, so that in pixels each image has a ball of its own. PGD-40 takes steps of "
    "0.01 deviations. Which scale fits is judged by the mean distance of our figures from the paper's, rule by rule."
)
HEADER = [
    "data",
    "network",
    "steps",
    "seed",
    "trained",
    *(f"eps {eps:g}: {of}" for eps in EPS for of in ("paper", "ours")),
]


def section(measured: Records, folder: Path) -> str:
    rows = []
    for rule, kind in (("rba", "standard"), ("em", "standard"), ("sda", "robust")):
        papers = expected()["pgd"][PALE][rule]
        for data in (PALE, SCALED):
            for seed in (0, 1):
                record = measured.get(name_of(data, rule, kind, seed))
                if record is not None:
                    cells = [
                        x for paper, ours in zip(papers, _ours(record), strict=True) for x in (f"{paper:.2f}", ours)
                    ]
                    rows.append([*heading(record), "under attack" if kind == "robust" else "clean", *cells])
    lines = [WORDS, table(HEADER, rows) if rows else "", *_nearer(measured), missing("scaled", measured)]
    return "\n\n".join(line for line in lines if line)


def _ours(record: Record) -> list[str]:
    return [percent(record.accuracy("pgd", eps)) for eps in radii_on(record.figures["data"])]


def _nearer(measured: Records) -> list[str]:
    """Which scale is nearer to the paper's figures, in points on average, where both were measured."""
    lines = []
    for rule, kind in (("rba", "standard"), ("em", "standard"), ("sda", "robust")):
        papers, apart = expected()["pgd"][PALE][rule], {}
        for data in (PALE, SCALED):
            record = measured.get(name_of(data, rule, kind))
            rows = [record.accuracy("pgd", eps) for eps in radii_on(data)] if record is not None else [None]
            if all(row is not None for row in rows):
                gaps = [abs(100 * row["accuracy"] - paper) for row, paper in zip(rows, papers, strict=True) if row]
                apart[data] = sum(gaps) / len(gaps)
        if len(apart) == 2:
            nearer = "the scaled images" if apart[SCALED] < apart[PALE] else "the pixels"
            both = f"{apart[PALE]:.1f} points in pixels, {apart[SCALED]:.1f} in deviations"
            lines.append(f"{rule.upper()}: {both} from the paper's figures on average: {nearer} fit better.")
    return lines
