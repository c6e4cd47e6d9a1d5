"""The table of hidden capsules: an input generated for each, and the classes that it activates."""

from pathlib import Path

from gammacaps.explain.pictures import Row, grid_png
from gammacaps.files import write_whole
from gammacaps.paper.expected import expected
from gammacaps.paper.plan import LONG
from gammacaps.paper.readings import Records, strongest
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import as_images, missing, table

ACTIVE = 0.5  # a class capsule longer than this takes the input for its class
COLUMNS = 8


def section(measured: Records, folder: Path) -> str:
    if LONG not in measured:
        return missing("hidden", measured)
    lines = [
        "Images generated to activate each hidden capsule (lambda 1e-5), with its length and the class that it "
        "activates most. A hidden capsule's number means nothing beyond its own run, so the paper's six stand apart: "
        + ", ".join(f"{capsule} {label}" for capsule, label in expected()["hidden"].items())
        + ". Where an image is almost black, the class is what the network answers to black: the capsule is long "
        "without any feature."
    ]
    last = measured[LONG]
    for record in (*last.earlier, last):
        write_whole(folder / f"hidden-{record.steps}.png", _picture(record))
        lines.append(f"After {record.steps:,} steps:")
        lines.append(f"![Inputs of the hidden capsules](hidden-{record.steps}.png)")
    lines.append(table(["capsule", "length", "strongest class", f"classes above {ACTIVE:g}"], _rows(last)))
    return "\n\n".join(lines)


def _picture(record: Record) -> bytes:
    names = record.figures["results"]["class_names"]
    images = as_images(record.arrays["generated_hidden"])
    captions = [
        f"{place}: {one['activation']:.2f} {names[strongest(one['scores'])]}"
        for place, one in enumerate(record.figures["generated"]["hidden"])
    ]
    places = range(0, len(images), COLUMNS)
    return grid_png([Row(images[k : k + COLUMNS], captions[k : k + COLUMNS]) for k in places], side=112)


def _rows(record: Record) -> list[list[str]]:
    names = record.figures["results"]["class_names"]
    rows = []
    for place, one in enumerate(record.figures["generated"]["hidden"]):
        active = [names[k] for k, length in enumerate(one["scores"]) if length > ACTIVE]
        best = strongest(one["scores"])
        answer = f"{names[best]} ({one['scores'][best]:.2f})"
        rows.append([str(place), f"{one['activation']:.2f}", answer, ", ".join(active) or "none"])
    return rows
