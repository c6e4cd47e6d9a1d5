"""Beyond the paper: the networks that come with the package, as their cards tell them, beside the paper's figures."""

from pathlib import Path
from typing import Any

from gammacaps.names import SHIPPED, shipped_names
from gammacaps.paper.expected import EPS, expected
from gammacaps.paper.plan import DATA
from gammacaps.paper.readings import Records
from gammacaps.paper.sections.cells import percent, table
from gammacaps.runs.run import Run

WORDS = (
    "The networks that come with the package (`gammacaps.load(NAME)`), measured as they are shipped, in half "
    "precision, beside the paper's SDA at the same radius, which was trained at eps 0.3. PGD-40 takes steps of 0.01. "
    "The worst case is over the strong suite. Each card has all attacks, and the commands."
)
HEADER = [
    "network",
    "data",
    "preset",
    "steps",
    "trained at",
    "clean",
    "eps",
    "PGD-40: paper's SDA",
    "PGD-40",
    "worst case",
]


def section(measured: Records, folder: Path) -> str:
    rows = [row for name in shipped_names() for row in _rows(name)]
    cards = ", ".join(f"[{name}](../../src/gammacaps/models/weights/{name}/README.md)" for name in shipped_names())
    return "\n\n".join([WORDS, table(HEADER, rows), f"Cards: {cards}."])


def _rows(name: str) -> list[list[str]]:
    """One row a radius at which a shipped network was attacked."""
    run = Run(SHIPPED / name)
    train, results = run.config.train, run.results()
    assert train is not None  # as every shipped network has
    assert results is not None
    data = results["data"]["name"]
    trained = f"eps {train.eps:g}, {train.attack_steps} x {train.attack_step:g}"
    about = [name, DATA.get(data, data), train.preset, f"{run.steps:,}", trained]
    about.append(_of(results["clean"]))
    rows = []
    for eps in sorted({row["eps"] for row in results["attacks"]}):
        pgd = next((row for row in results["attacks"] if row["attack"] == "pgd" and row["eps"] == eps), None)
        worst = next((row for row in results["worst"] if row["eps"] == eps), None)
        papers = expected()["pgd"].get(data)
        paper = f"{papers['sda'][EPS.index(eps)]:.2f}" if papers and eps in EPS else "-"
        rows.append([*about, f"{eps:g}", paper, _of(pgd), f"**{_of(worst)}**" if worst else "-"])
    return rows


def _of(row: dict[str, Any] | None) -> str:
    return "-" if row is None else f"{percent(row)} of {row['images']:,}"
