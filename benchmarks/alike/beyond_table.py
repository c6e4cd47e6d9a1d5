"""The table of what else the networks withstand."""

from collections.abc import Callable, Sequence

from benchmarks.alike.compare import NONE, Row, cell, figure, grouped, markdown, places
from gammacaps.names import NORM_TITLES
from gammacaps.radius import radius


def of_beyond(rows: Sequence[Row]) -> str:
    """Other norms, turns and shifts, bad pictures, unseen things and calibration; empty where nothing was measured."""
    rows = [row for row in rows if row["figures"]["beyond"]]
    if not rows:
        return ""
    norms = list(dict.fromkeys(one["norm"] for row in rows for one in row["figures"]["beyond"]["norms"]))
    heads = (
        *("data, eps", "trained", "network", "gamma", "clean", *(NORM_TITLES[norm] for norm in norms)),
        *("turns, shifts, scalings", "bad pictures", "unseen, by length", "by pattern", "calibration error"),
    )
    lines = []
    for (data, trained, network, gamma), seeds in grouped(rows, "data", "trained", "network", "gamma").items():
        in_norms = [_in_norm(seeds, norm) for norm in norms]
        shares = [
            cell(seeds, figure("beyond", *names))
            for names in (("clean", "accuracy"), ("spatial", "accuracy"), ("corruptions", "mean"))
        ]
        unseen = [_mean_auroc(seeds, by) for by in ("length", "pattern")]
        error = cell(seeds, figure("beyond", "calibration"), places)
        lines.append((data, trained, network, f"{gamma:g}", shares[0], *in_norms, *shares[1:], *unseen, error))
    words = (
        f"**What else they withstand.** {rows[0]['beyond']:,} test images: right clean, in the worst case in each "
        "norm, in that of turns, shifts and scalings, and the mean over bad pictures. Unseen things: the mean AUROC by "
        "which they are told from test images, by the longest class capsule (a CNN's largest probability) and by which "
        "hidden capsules are active."
    )
    return f"{words}\n\n{markdown(heads, lines)}"


def _in_norm(seeds: Sequence[Row], norm: str) -> str:
    """The worst case in a norm with its radius, or with each of several where rows of other commands are mixed."""
    norms = [one for row in seeds for one in row["figures"]["beyond"]["norms"]]
    radii = dict.fromkeys(one["eps"] for one in norms if one["norm"] == norm)
    return "; ".join(f"{cell(seeds, _worst(norm, eps))} at {radius(eps)}" for eps in radii) or NONE


def _worst(norm: str, eps: float) -> Callable[[Row], float | None]:
    """A row's accuracy in a norm within a radius; None where that was not measured."""

    def value(row: Row) -> float | None:
        norms = row["figures"]["beyond"]["norms"]
        return next((one["accuracy"] for one in norms if (one["norm"], one["eps"]) == (norm, eps)), None)

    return value


def _mean_auroc(seeds: Sequence[Row], by: str) -> str:
    """Over the kinds of unseen things, not attacked; a CNN has no pattern."""

    def mean(row: Row) -> float | None:
        found = [one[by]["auroc"] for one in row["figures"]["beyond"]["unseen"] if one[by] is not None]
        return sum(found) / len(found) if found else None

    return cell(seeds, mean, places)
