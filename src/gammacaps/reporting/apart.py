"""Whether two networks can be told apart under attack by the figures of so many images."""

from dataclasses import dataclass
from typing import Any

from gammacaps.evaluation.paired import unpaired_difference
from gammacaps.radius import radius

HOLDS = 0.5  # of the images that are right when clean: as many at least must stand where a network is said to hold


@dataclass(frozen=True)
class Standing:
    """How many of a network's test images are right clean, and how many of them under an attack of this radius."""

    eps: float
    images: int
    clean: int
    attacked: int

    @property
    def holds(self) -> bool:
        return self.attacked >= HOLDS * self.clean


def standing(results: dict[str, Any], row: dict[str, Any] | None) -> Standing | None:
    """By the results of a network and its row of an attack; None where that has not come to all images."""
    clean = results["clean"]
    if row is None or row.get("images") != clean["images"]:
        return None
    return Standing(row["eps"], clean["images"], clean["correct"], row["correct"])


def not_apart(first: Standing | None, second: Standing | None) -> str:
    """Where the 95% interval of their difference holds 0, that and what to try in some sentences; else nothing.

    Both were shown the same images, but results hold counts alone. So the interval is not paired, and wider than one
    told image by image would be: networks that differ by little may seem alike.
    """
    if first is None or second is None or first.eps != second.eps:
        return ""
    apart = unpaired_difference(_row(first), _row(second))
    if not apart.low <= 0 <= apart.high:
        return ""
    way = "a larger --eps" if first.holds and second.holds else "a longer training"
    return (
        f"Under attack (eps {radius(first.eps)}) the two networks can't be told apart with {apart.images:,} test "
        f"images: they differ by {apart.words()}, a 95% interval that holds 0. It is not paired image by image, and so "
        f"wider than need be. Try more images, or {way}."
    )


def _row(one: Standing) -> dict[str, Any]:
    return {"accuracy": one.attacked / one.images, "correct": one.attacked, "images": one.images}
