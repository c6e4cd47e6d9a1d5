"""The table of activations: how long each class capsule becomes by the input generated for it."""

from pathlib import Path

from gammacaps.paper.expected import expected
from gammacaps.paper.plan import LOOKED_AT
from gammacaps.paper.readings import Records
from gammacaps.paper.sections.cells import missing, table


def section(measured: Records, folder: Path) -> str:
    sda, rba = (measured.get(name) for name in LOOKED_AT)
    records = [record for whole in (sda, rba) if whole is not None for record in (*whole.earlier, whole)]
    if not records:
        return missing("activations", measured)
    paper = expected()["activations"]
    header = ["capsule", *(f"paper: {column}" for column in paper["columns"])]
    header += [f"ours: {record.figures['rule'].upper()}, {record.steps:,} steps" for record in records]
    names = records[0].figures["results"]["class_names"]
    rows = [
        [names[k], *(f"{value:.2f}" for value in line)]
        + [f"{record.figures['generated']['class'][k]['activation']:.2f}" for record in records]
        for k, line in enumerate(paper["rows"])
    ]
    return "\n\n".join(text for text in (table(header, rows), missing("activations", measured)) if text)
