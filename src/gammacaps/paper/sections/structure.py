"""Table 1: T and D on one class and on all, and accuracy, of networks trained on clean images."""

from pathlib import Path

from gammacaps.evaluation.interval import two_places
from gammacaps.paper.expected import of_paper
from gammacaps.paper.plan import PARTS
from gammacaps.paper.readings import Records, numbers
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import heading, missing, percent, table

HEADER = ["data", "routing", "steps", "seed"] + [
    f"{name}: {whose}" for name in ("T [0]", "D [0]", "T", "D", "accuracy") for whose in ("paper", "ours")
]


def section(measured: Records, folder: Path) -> str:
    rows = [_row(measured[name]) for name in PARTS["table1"] if name in measured]
    words = (
        "Trained on clean images. [0] is over class 0 alone. D is the mean over batches of 100, as the paper's, of the "
        "hidden layers, EM's over the capsules at all positions; T the mean over the routed layers; accuracy in "
        "percent with its 95% interval."
    )
    texts = (words, table(HEADER, rows) if rows else "", missing("table1", measured))
    return "\n\n".join(text for text in texts if text)


def _row(record: Record) -> list[str]:
    paper = of_paper("structure", record.figures["data"], record.figures["rule"])
    ours = numbers(record)
    cells = [cell for name in ("T0", "D0", "T", "D") for cell in (two_places(paper[name]), two_places(ours[name]))]
    clean = percent(record.figures["results"]["clean"])
    return [*heading(record), *cells, f"{paper['accuracy']:.2f}", clean]
