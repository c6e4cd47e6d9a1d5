"""What the claims, the notes and the page's sections all read from the runs' records."""

from collections.abc import Iterable, Sequence
from typing import Any

from gammacaps.attacks.table import attack_names
from gammacaps.evaluation.by_image import CLEAN, WORST, Right
from gammacaps.evaluation.interval import wilson
from gammacaps.evaluation.paired import Difference, mean_share, paired_difference, unpaired_difference
from gammacaps.paper.record import AUTHORS, Record
from gammacaps.paper.trainings import STEPS

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


def full_steps(record: Record) -> int:
    """The length at which a training counts as long enough: the paper's, or a trial's own."""
    return STEPS.get(record.figures["kind"], 0)


def row_of(record: Record, attack: str, eps: float | None = None, prefix: str = "") -> dict[str, Any] | None:
    """The row of what was measured under an attack: clean, the worst case, or one of the paper's."""
    if attack == CLEAN or eps is None:
        clean: dict[str, Any] = record.figures["results"]["clean"]
        return clean
    if attack == WORST:
        return record.worst(eps)
    return record.by_authors(eps) if prefix == AUTHORS else record.accuracy(attack, eps)


def difference(first: list[Record], second: list[Record], attack: str, eps: float | None = None) -> Difference:
    """The first network's share of right images less the second's, over their seeds: image by image where all tell."""
    first, second = ([record for record in side if row_of(record, attack, eps)] for side in (first, second))
    bits = _bits(first, attack, eps), _bits(second, attack, eps)
    if bits[0] and bits[1]:
        return paired_difference(bits[0], bits[1])
    a, b = ([row for record in side if (row := row_of(record, attack, eps))] for side in (first, second))
    spread = [x["accuracy"] - y["accuracy"] for x, y in zip(a, b, strict=False)]
    return unpaired_difference(_mean(a), _mean(b), spread)


def own_difference(record: Record, first: str, second: str, eps: float) -> Difference | None:
    """What one network keeps under one attack less what it keeps under another; None where one was not tried."""
    a, b = record.accuracy(first, eps), record.accuracy(second, eps)
    if a is None or b is None:
        return None
    bits = record.bits(first, eps), record.bits(second, eps)
    if bits[0] is not None and bits[1] is not None:
        return paired_difference([bits[0]], [bits[1]])
    return unpaired_difference(a, b)


def lowest_share(seeds: list[Record], eps: float, *, authors: bool = True) -> tuple[float, float, float]:
    """What a network keeps under PGD with its 95% interval, over its seeds: on the loss that leaves least."""
    shares = []
    for prefix in ("", AUTHORS) if authors else ("",):
        rows = [row for record in seeds if (row := row_of(record, "pgd", eps, prefix))]
        bits = _bits(seeds, "pgd", eps, prefix)
        if bits:
            shares.append(mean_share(bits))
        elif rows:
            mean = _mean(rows)
            low, high = wilson(mean["correct"], mean["images"])
            shares.append((mean["accuracy"], low, high))
    return min(shares)


def _bits(seeds: list[Record], attack: str, eps: float | None, prefix: str = "") -> list[Right]:
    """What each seed had right, image by image; empty where one of them does not tell."""
    bits = [right for record in seeds if (right := record.bits(attack, eps, prefix=prefix)) is not None]
    return bits if len(bits) == len(seeds) else []


def _mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A row of the seeds' mean, as of the images of one."""
    images = min(row["images"] for row in rows)
    share = sum(row["accuracy"] for row in rows) / len(rows)
    return {"accuracy": share, "correct": round(share * images), "images": images}


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
