"""Figures of beyond.json as a table that a person can read."""

from typing import Any

from gammacaps.evaluation.table import accuracy_line
from gammacaps.names import NORM_TITLES
from gammacaps.radius import radius

WIDE = 36  # the column of names


def table(results: dict[str, Any]) -> str:
    """Accuracies with their 95% intervals, what tells unseen things apart, and calibration."""
    lines = [f"{results['data']['name']}, {results['data']['images']} test images", ""]
    lines.append(f"  {'':<{WIDE}}{'accuracy':>9}   95% interval")
    lines += [accuracy_line(name, row, WIDE) for name, row in main_rows(results)]
    corruptions = results["corruptions"]
    if corruptions["mean"] is not None:
        name = f"bad pictures, mean of {len(corruptions['kinds'])}"
        lines.append(f"  {name:<{WIDE}}{100 * corruptions['mean']:>8.1f}%")
    lines += [accuracy_line(f"  {row['kind']}", row, WIDE) for row in corruptions["kinds"]]
    for row in results["turned"] or ():
        if row["angle"] in (30, 60, 90):
            lines.append(accuracy_line(f"all turned right by {row['angle']} degrees", row["right"], WIDE))
    if results["unseen"]:
        attacked = f"attacked, {radius(results['unseen'][0]['eps'])}"
        lines += ["", "  Things it has never seen, told from the test images: AUROC, and (false alarms at 95%)"]
        lines.append(f"  {'':<16}" + "".join(f"{head:>18}" for head in ("by length", attacked, "by pattern", attacked)))
    for row in results["unseen"]:
        lines.append(f"  {row['source']:<16}" + "".join(f"{cell:>18}" for cell in told(row)))
    calibration = results["calibration"]
    shares = [(one["accuracy"], one["share"]) for one in halves(results)]
    surest = ", ".join(f"{100 * right:.1f}% of the surest {100 * part:.0f}%" for right, part in shares)
    lines += ["", f"  Calibration error {calibration['error']:.3f}; right are {surest}."]
    notes = list(results["notes"])
    if not results["complete"]:
        notes.append("Not all of it was done in the time given: the same command goes on from here.")
    return "\n".join([*lines, *(["", *(f"  Note: {note}" for note in notes)] if notes else [])])


def main_rows(results: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Clean, the worst case in each norm, and that of turns, shifts and scalings: names and figures."""
    norms = [(f"{NORM_TITLES[row['norm']]}, eps {radius(row['eps'])}", row) for row in results["norms"]]
    grid = results["spatial"]["grid"]
    place = f"worst of {grid['placements']} turns, shifts, scalings"
    return [("clean", results["clean"]), *norms, (place, results["spatial"])]


def told(row: dict[str, Any]) -> list[str]:
    """By the length and by the pattern, clean and attacked: AUROC and false alarms."""
    cells = []
    for figures in (row["length"], row["pattern"]):
        for each in (None, None) if figures is None else (figures, figures["attacked"]):
            cells.append("-" if each is None else f"{each['auroc']:.3f} ({100 * each['false_alarms']:.0f}%)")
    return cells


def halves(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Half of the images answered, and all."""
    return [results["calibration"]["answered"][place] for place in (0, -1)]
