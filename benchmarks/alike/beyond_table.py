"""The table of what else the networks withstand."""

from collections.abc import Sequence

from benchmarks.alike.compare import Row, cell, figure, grouped, markdown, places
from gammacaps.names import NORM_TITLES


def of_beyond(rows: Sequence[Row]) -> str:
    """Other norms, turns and shifts, bad pictures, unseen things and calibration; empty where nothing was measured."""
    rows = [row for row in rows if row["figures"]["beyond"]]
    if not rows:
        return ""
    norms = [row["norm"] for row in rows[0]["figures"]["beyond"]["norms"]]
    heads = (
        *("data, eps", "trained", "network", "gamma", "clean", *(NORM_TITLES[norm] for norm in norms)),
        *("turns, shifts, scalings", "bad pictures", "unseen, by length", "by pattern", "calibration error"),
    )
    lines = []
    for (data, trained, network, gamma), seeds in grouped(rows, "data", "trained", "network", "gamma").items():
        radii = [row["eps"] for row in seeds[0]["figures"]["beyond"]["norms"]]
        in_norms = [
            f"{cell(seeds, figure('beyond', 'norms', k, 'accuracy'))} at {radius:g}" for k, radius in enumerate(radii)
        ]
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


def _mean_auroc(seeds: Sequence[Row], by: str) -> str:
    """Over the kinds of unseen things, not attacked; a CNN has no pattern."""

    def mean(row: Row) -> float | None:
        found = [one[by]["auroc"] for one in row["figures"]["beyond"]["unseen"] if one[by] is not None]
        return sum(found) / len(found) if found else None

    return cell(seeds, mean, places)
