"""Table 1: T and D on one class and on all, and accuracy, of networks trained on clean images."""

from pathlib import Path

from gammacaps.paper.expected import expected
from gammacaps.paper.parts.cells import Found, heading, missing, percent, score, table
from gammacaps.paper.plan import PARTS
from gammacaps.paper.record import Record

HEADER = ["data", "routing", "steps", "seed"] + [
    f"{name}: {whose}" for name in ("T [0]", "D [0]", "T", "D", "accuracy") for whose in ("paper", "ours")
]


def section(found: Found, folder: Path) -> str:
    rows = [_row(found[name]) for name in PARTS["table1"] if name in found]
    words = (
        "Trained on clean images. [0] is over class 0 alone. D is the mean over batches of 100, as the paper's, of the "
        "hidden layers, EM's over the capsules at all positions; T the mean over the routed layers; accuracy in "
        "percent with its 95% interval."
    )
    return "\n\n".join(part for part in (words, table(HEADER, rows) if rows else "", missing("table1", found)) if part)


def numbers(record: Record) -> dict[str, float]:
    """The five columns of the paper's table, ours."""
    results = record.figures["results"]
    T, D = results["T"], results["D"]
    return {
        "T0": T["by_class"][0]["mean"],
        "D0": D["by_class"][0]["mean_over_batches_of_100"],
        "T": T["mean"],
        "D": D["mean_over_batches_of_100"],
        "accuracy": 100 * results["clean"]["accuracy"],
    }


def _row(record: Record) -> list[str]:
    told = expected()["structure"][record.figures["data"]][record.figures["rule"]]
    ours = numbers(record)
    cells = [cell for name in ("T0", "D0", "T", "D") for cell in (score(told[name]), score(ours[name]))]
    clean = percent(record.figures["results"]["clean"])
    return [*heading(record), *cells, f"{told['accuracy']:.2f}", clean]
