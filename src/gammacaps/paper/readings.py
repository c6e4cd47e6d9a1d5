"""What the claims, the notes and the page's sections all read from the runs' records."""

from collections.abc import Iterable, Sequence
from typing import Any

from gammacaps.attacks.table import attack_names
from gammacaps.paper.plan import name_of
from gammacaps.paper.record import Record

Records = dict[str, Record]  # runs that were measured, by name
NOT_YET = "not run yet"
SHIRT = 6  # the class of fashionMNIST that the paper follows through training
UNLEARNED = 0.05  # the share of a class's clean images below which it counts as not learned


def numbers(record: Record) -> dict[str, float]:
    """The five columns of the paper's Table 1, ours."""
    results = record.figures["results"]
    T, D = results["T"], results["D"]
    return {
        "T0": T["by_class"][0]["mean"],
        "D0": D["by_class"][0]["mean_over_batches_of_100"],
        "T": T["mean"],
        "D": D["mean_over_batches_of_100"],
        "accuracy": 100 * results["clean"]["accuracy"],
    }


def longest(records: Records, data: str) -> Record | None:
    """SDA under attack on a data set, the longest training that there is."""
    names = [name_of(data, "sda", kind) for kind in ("long", "robust")]
    return next((records[name] for name in names if name in records), None)


def right(record: Record, label: int) -> float:
    """The share of a class's images that is right."""
    row = record.figures["results"]["confusion"][label]
    return row[label] / max(1, sum(row))


def unlearned(record: Record) -> list[str]:
    """The classes of which next to no clean image is right, with the share that is."""
    results = record.figures["results"]
    shares = [right(record, label) for label in range(len(results["confusion"]))]
    return [f"{results['class_names'][k]} {share:.0%}" for k, share in enumerate(shares) if share < UNLEARNED]


def strongest(scores: list[float]) -> int:
    """The class whose capsule is longest."""
    return max(range(len(scores)), key=lambda k: scores[k])


def most_frequent_share(counts: Sequence[int]) -> float:
    """The share of the most frequent class, of images of which there are so many of each."""
    return max(counts) / sum(counts)


def asked_attacks(record: Record) -> set[str]:
    """The attacks that a run's worst cases were asked to be over."""
    return set().union(*(record.suite(row["eps"]) for row in record.figures["worst"]))


def lacking_attacks(record: Record, beside: Iterable[Record]) -> list[str]:
    """The attacks of other runs' worst cases that one of this run's is not over."""
    rows = record.figures["worst"]
    others = {name for other in beside for name in asked_attacks(other)}
    own = set.intersection(*(record.suite(row["eps"]) for row in rows)) if rows else others
    return [name for name in attack_names() if name in others - own]


def unlike_steps(rows: Sequence[dict[str, Any]]) -> str:
    """How long PGD's steps were, where they were not the same in all rows."""
    steps = [row["step"] for row in rows]
    listed = ", ".join(f"{step:g}" for step in steps)
    return f" (PGD's steps of {listed}; the longest reach farthest)" if len(set(steps)) > 1 else ""
