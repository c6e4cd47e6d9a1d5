"""New viewpoints over familiar ones, all along training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.viewpoints.compare import share_right
from gammacaps.evaluation.curve import STYLES
from gammacaps.files import write_figure

TITLES = {"azimuth": "azimuth: other sides of the toys", "elevation": "elevation: seen from higher up"}


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A panel for each split by viewpoint, a line for each training, its end with a mark.

    At the same place on the horizontal axis networks know the familiar viewpoints equally well.
    """
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(row["viewpoints"] for row in rows))
    figure = Figure(figsize=(5.2 * len(kinds), 4.4), layout="constrained")
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    names = list(dict.fromkeys(row["network"] for row in rows))
    for axes, kind in zip(panels, kinds, strict=True):
        for row in rows:
            if row["viewpoints"] != kind:
                continue
            colour, mark = STYLES[names.index(row["network"]) % len(STYLES)]
            familiar, new = (
                [100 * share_right(row, point, part) for point in row["curve"]] for part in ("familiar", "new")
            )
            first = row["seed"] == min(each["seed"] for each in rows)
            axes.plot(familiar, new, color=colour, linewidth=1.2, alpha=0.8, linestyle="-" if first else "--")
            label = row["network"] if first else None
            axes.plot(familiar[-1:], new[-1:], color=colour, marker=mark, markersize=8, linestyle="none", label=label)
        axes.plot((0, 100), (0, 100), color="#999999", linewidth=1)
        axes.set(xlim=(15, 100), ylim=(15, 100), xlabel="familiar viewpoints, right, %", title=TITLES[kind])
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("new viewpoints, right, %")
    panels[0].legend(loc="upper left")
    write_figure(path, figure)
