"""The activation maps of the first hidden layer: a row an image, a column a capsule, for all classes and for one."""

from pathlib import Path

from gammacaps.explain.pictures import figure_png
from gammacaps.files import write_whole
from gammacaps.paper.plan import PARTS, RULES
from gammacaps.paper.readings import Records
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import missing


def section(measured: Records, folder: Path) -> str:
    records = [measured[name] for name in PARTS["maps"] if name in measured]
    if not records:
        return missing("maps", measured)
    write_whole(folder / "maps.png", _picture(records))
    words = (
        "Each row is a test image, each column a hidden capsule (for EM a capsule type); above images of all "
        "classes, below of class 0 alone. Black is 0, white is 1. Capsules that follow the input change from row to "
        "row above and hardly below."
    )
    lines = [words, "![Activation maps](maps.png)", missing("maps", measured)]
    return "\n\n".join(line for line in lines if line)


def _picture(records: list[Record]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(records), 6), layout="constrained")
    cells = figure.subplots(2, len(records), squeeze=False)
    for column, record in enumerate(records):
        shown = record.figures["map"]
        both = (("map_shuffled", "all classes", shown["D_shuffled"]), ("map_alone", "class 0", shown["D_alone"]))
        for row, (key, which, D) in enumerate(both):
            axes = cells[row][column]
            axes.imshow(record.arrays[key], cmap="gray", vmin=0, vmax=255, aspect="auto", interpolation="nearest")
            axes.set_title(f"{RULES[record.figures['rule']]}, {which} (D = {D:.2f})", fontsize=9)
            axes.set_xlabel(shown["unit"], fontsize=8)
            axes.tick_params(labelsize=7)
    return figure_png(figure)
