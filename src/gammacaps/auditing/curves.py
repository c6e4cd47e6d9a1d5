"""The curves of an audit: which kinds of capsules there are, over the attack's radius and over the threshold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gammacaps.auditing.kinds import DEAD, GAMMA, KINDS, NON_ROBUST, NOT_USEFUL
from gammacaps.auditing.table import run_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {GAMMA: "#009e73", NON_ROBUST: "#d55e00", NOT_USEFUL: "#56b4e9", DEAD: "#999999"}


def over_eps(audits: Sequence[dict[str, Any]]) -> "Figure":
    """How many capsules are of each kind as the attack's radius grows, a panel for each audit."""
    return _curves(audits, "eps", "radius of the attack, eps", "tau")


def over_tau(audits: Sequence[dict[str, Any]]) -> "Figure":
    """How many capsules are of each kind as the threshold of being active grows, a panel for each audit."""
    return _curves(audits, "tau", "active: longer than tau", "eps")


def _curves(audits: Sequence[dict[str, Any]], over: str, label: str, fixed: str) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(4.4 * len(audits) + 1.4, 3.4), layout="constrained")
    panels = figure.subplots(1, len(audits), squeeze=False, sharey=True)[0]
    for panel, results in zip(panels, audits, strict=True):
        layers = [layer[f"over_{over}"] for layer in results["layers"]]
        places = [f"{row[over]:g}" for row in layers[0]]
        below = [0] * len(places)
        for kind in KINDS:
            heights = [sum(rows[n][kind] for rows in layers) for n in range(len(places))]
            bars = panel.bar(places, heights, 0.7, bottom=below, color=COLOURS[kind], label=kind)
            panel.bar_label(bars, [str(h) if h else "" for h in heights], label_type="center", fontsize=8)
            below = [b + h for b, h in zip(below, heights, strict=True)]
        panel.set(title=f"{run_name(results)}, {fixed} {_fixed(results, fixed):g}", xlabel=label)
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("capsules")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False)  # in the bars' order
    return figure


def _fixed(results: dict[str, Any], name: str) -> float:
    """The one value of what the curve does not run over."""
    value: float = results["tau"] if name == "tau" else results["eps"][-1]
    return value
