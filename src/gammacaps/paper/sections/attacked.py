"""Table 2 (PGD) and the table of FGSM: as in the paper SDA is trained under attack, and the others are not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gammacaps.paper.expected import EPS, expected
from gammacaps.paper.plan import PARTS, TENTH
from gammacaps.paper.readings import Records
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import heading, missing, percent, table

HEADER = ["data", "routing", "steps", "seed", "trained"]
PGD = "PGD: 40 steps of 0.01, a random start, on the margin. Percent right of the test images, with the 95% interval."
FGSM = "FGSM, on the margin. Percent right of the test images, with the 95% interval."
AUTHORS = "The same 40 steps on the cross-entropy of lengths, the loss of the authors' code"
AT_A_TENTH = "smallNORB at a tenth of the radii, beside what the paper has at the whole (see smallNORB's radii above)."
Row = Callable[[Record, float], dict[str, Any] | None]


def pgd_section(measured: Records, folder: Path) -> str:
    there = [measured[name] for name in PARTS["table2"] if name in measured]
    without = [f"`{record.name}`" for record in there if record.by_authors(EPS[0]) is None]
    lacking = f" (not measured: {', '.join(without)})" if without else ""
    theirs = f"{AUTHORS}{lacking}."
    more = [(theirs, EPS, Record.by_authors), (f"{AT_A_TENTH}{_steps(measured)}", TENTH, _row_of("pgd"))]
    return _section("table2", "pgd", measured, [(PGD, EPS, _row_of("pgd")), *more])


def _steps(measured: Records) -> str:
    """How PGD went at a tenth of the radii: of some it may fall short, and not all runs took the same steps."""
    runs: dict[float, list[str]] = {}
    for name in PARTS["table2"]:
        if name in measured and (row := measured[name].accuracy("pgd", TENTH[0])):
            runs.setdefault(row["step"], []).append(f"`{name}`")
    longest = max(runs, default=0.0)
    sentences = [f" PGD: 40 steps of {longest:g}, which reach {40 * longest:g}"] if runs else []
    sentences += [
        f"only 40 of {s:g}, which reach {40 * s:g}: {', '.join(runs[s])}" for s in sorted(runs) if s < longest
    ]
    return "; ".join(sentences) + "." * bool(sentences)


def fgsm_section(measured: Records, folder: Path) -> str:
    return _section("fgsm", "fgsm", measured, [(FGSM, EPS, _row_of("fgsm")), (AT_A_TENTH, TENTH, _row_of("fgsm"))])


def _section(part: str, attack: str, measured: Records, tables: list[tuple[str, tuple[float, ...], Row]]) -> str:
    """The tables that have rows, each with the words before it, its radii, and where its rows are."""
    records = [measured[name] for name in sorted(PARTS[part], key=_order) if name in measured]
    texts = []
    for words, radii, row_of in tables:
        rows = [_cells(record, attack, radii, row_of) for record in records if row_of(record, radii[0])]
        if rows:
            texts += [words, table([*HEADER, *_columns(radii)], rows)]
    return "\n\n".join(text for text in (*texts, missing(part, measured)) if text)


def _columns(radii: tuple[float, ...]) -> list[str]:
    """The paper's figure at a radius of the paper's, ours at the same or at a part of it."""
    return [
        column
        for papers_eps, eps in zip(EPS, radii, strict=True)
        for column in (f"eps {papers_eps:g}: paper", f"eps {eps:g}: ours")
    ]


def _order(name: str) -> tuple[int, int, str]:
    """By data set as in the paper, and in each RBA, EM, SDA."""
    data = next(place for place, data in enumerate(expected()["pgd"]) if name.startswith(f"{data}-"))
    return data, next(place for place, rule in enumerate(("-rba-", "-em-", "-sda-")) if rule in name), name


def _row_of(attack: str) -> Row:
    return lambda record, eps: record.accuracy(attack, eps)


def _cells(record: Record, attack: str, radii: tuple[float, ...], row_of: Row) -> list[str]:
    figures = record.figures
    papers = expected()[attack][figures["data"]][figures["rule"]]
    pairs = zip(papers, radii, strict=True)
    cells = [cell for paper, eps in pairs for cell in (f"{paper:.2f}", percent(row_of(record, eps)))]
    return [*heading(record), _trained(figures["train"]), *cells]


def _trained(train: dict[str, Any]) -> str:
    return f"under attack, eps {train['eps']:g}" if train["robust"] else "clean"
