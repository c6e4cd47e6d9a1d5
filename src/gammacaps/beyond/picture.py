"""One picture of beyond.json: bars, the curve over the angle, and how sure against how right."""

from pathlib import Path
from typing import Any

from gammacaps.beyond.table import main_rows
from gammacaps.evaluation.curve import STYLES
from gammacaps.files import write_figure


def draw(results: dict[str, Any], path: Path) -> None:
    """Bars are shares of right answers, but for unseen things, whose AUROC is 50% by guessing."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.5, 1, 1))
    _bars(left, results)
    _turned(middle, results)
    _reliability(right, results)
    figure.suptitle(f"{results['run']} on {results['data']['name']}, {results['data']['images']} test images")
    write_figure(path, figure)


def _bars(axes: Any, results: dict[str, Any]) -> None:
    rows = [(name.replace("worst of ", ""), row["accuracy"], row["interval"]) for name, row in main_rows(results)]
    rows.append(("bad pictures, mean", results["corruptions"]["mean"], None))
    rows += [(f"unseen: {row['source']}, AUROC", row["length"]["auroc"], None) for row in results["unseen"]]
    shown = [row for row in rows if row[1] is not None]
    for place, (_, value, interval) in enumerate(shown):
        low, high = interval or (value, value)
        ends = [[100 * (value - low)], [100 * (high - value)]]
        unseen = place >= len(shown) - len(results["unseen"])
        axes.barh(place, 100 * value, xerr=ends, color=STYLES[1 if unseen else 0][0], height=0.7, ecolor="#333333")
        axes.text(2, place, f"{100 * value:.1f}", va="center", color="white", fontsize=8)
    axes.set(yticks=range(len(shown)), yticklabels=[name for name, _, _ in shown], xlim=(0, 100), xlabel="%")
    axes.invert_yaxis()


def _turned(axes: Any, results: dict[str, Any]) -> None:
    for place, side in enumerate(("right", "left")):
        rows = [(row["angle"], 100 * row[side]["accuracy"]) for row in results["turned"] or ()]
        colour, mark = STYLES[place]
        axes.plot(*zip(*rows, strict=True) if rows else ((), ()), color=colour, marker=mark, label=f"to the {side}")
    axes.set(xlabel="all images turned by, degrees", ylabel="right, %", ylim=(0, 100))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper right")


def _reliability(axes: Any, results: dict[str, Any]) -> None:
    filled = [one for one in results["calibration"]["bins"] if one["images"]]
    most = max(one["images"] for one in filled)
    sizes = [20 + 180 * one["images"] / most for one in filled]
    axes.plot((0, 1), (0, 1), color="#999999", linewidth=1)
    sure, often = ([one[name] for one in filled] for name in ("sure", "right"))
    axes.scatter(sure, often, s=sizes, color=STYLES[0][0], alpha=0.7)
    axes.set(xlabel="how sure: longest class capsule", ylabel="how often right", xlim=(0, 1.03), ylim=(-0.03, 1.03))
    axes.grid(alpha=0.3)
