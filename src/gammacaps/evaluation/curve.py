"""The curve of accuracy over the attack's radius, for several runs in one picture."""

from pathlib import Path
from typing import Any

from gammacaps.files import write_figure
from gammacaps.names import NORM_TITLES

# Okabe and Ito's colours, which colour-blind people can tell apart, each with a mark of its own.
STYLES = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#e69f00", "v"), ("#56b4e9", "P"))


def draw_curves(results: list[dict[str, Any]], path: Path) -> None:
    """Accuracy under PGD with its 95% interval as a band; one line a run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for place, one in enumerate(results):
        rows = [row for row in one["sweep"] if row["accuracy"] is not None]
        colour, mark = STYLES[place % len(STYLES)]
        eps, accuracy = [row["eps"] for row in rows], [100 * row["accuracy"] for row in rows]
        low, high = ([100 * row["interval"][side] for row in rows] for side in (0, 1))
        axes.plot(eps, accuracy, color=colour, marker=mark, label=one["run"])
        axes.fill_between(eps, low, high, color=colour, alpha=0.18, linewidth=0)
    norm = NORM_TITLES[results[0]["settings"].get("norm", "linf")]
    axes.set(xlabel=f"radius eps of the attack ({norm})", ylabel="right under PGD, %", ylim=(0, 100))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper right")
    write_figure(path, figure)
