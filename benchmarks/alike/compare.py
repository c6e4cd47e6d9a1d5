"""Figures over seeds, and paired differences over images, of rows of the experiment."""

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.alike.measure import PGD
from gammacaps.evaluation.by_image import CLEAN, WORST, Right, bit_name, unpacked
from gammacaps.evaluation.paired import Difference, paired_difference

Row = dict[str, Any]
SHOWN = (CLEAN, PGD, WORST)  # what is compared image by image
NONE = "–"


def right(row: Row, attack: str) -> Right | None:
    """Which images were right clean, under PGD-40 or in the worst case; None where that was not measured."""
    arrays = {name: np.frombuffer(base64.b64decode(text), np.uint8) for name, text in row["bits"].items()}
    return unpacked(arrays, attack if attack == CLEAN else bit_name(attack, row["eps"]))


def difference(first: Sequence[Row], second: Sequence[Row], attack: str, other: str | None = None) -> Difference | None:
    """The first rows' share of right images less the second's (under the `other` attack), of seeds that both have."""
    seeds = sorted({row["seed"] for row in first} & {row["seed"] for row in second})
    sides = []
    for rows, name in ((first, attack), (second, other or attack)):
        of = {row["seed"]: row for row in rows}
        sides.append([bits for seed in seeds if (bits := right(of[seed], name)) is not None])
    complete = seeds and all(len(side) == len(seeds) for side in sides)
    return paired_difference(*sides) if complete else None


def difference_cell(found: Difference | None) -> str:
    """In points, with the 95% interval and each seed's own."""
    if found is None:
        return NONE
    spread = found.spread().replace(" and ", ", ")
    return found.words().replace(" points", "") + (f" [{spread}]" if spread else "")


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def places(value: float) -> str:
    return f"{value:.2f}"


def seconds(value: float) -> str:
    return f"{value:.0f}"


def count(value: float) -> str:
    return f"{value:g}"


def cell(rows: Sequence[Row], value: Callable[[Row], Any], shown: Callable[[float], str] = percent) -> str:
    """The mean over seeds, and behind it each seed's own value where there are several."""
    values = [found for row in rows if (found := value(row)) is not None]
    if not values:
        return NONE
    each = [shown(one) for one in values]
    mean = shown(sum(values) / len(values))
    return f"{mean} [{', '.join(each)}]" if len(set(each)) > 1 else mean


def accuracy(attack: str) -> Callable[[Row], float | None]:
    """The share of right images: clean, in the worst case, or under an attack."""

    def value(row: Row) -> float | None:
        figures = row["figures"]
        named = {CLEAN: figures["clean"], WORST: figures["worst"]} | {one["attack"]: one for one in figures["attacks"]}
        return named[attack]["accuracy"] if attack in named else None

    return value


def figure(*names: str | int) -> Callable[[Row], Any]:
    """What stands under these names among a row's figures; None where one of them was not measured."""

    def value(row: Row) -> Any:
        found: Any = row["figures"]
        for name in names:
            found = None if found is None else found[name]
        return found

    return value


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that are alike in these fields, in the order in which they come; seeds rise."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        groups.setdefault(tuple(_plain(row[name]) for name in names), []).append(row)
    return groups


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def markdown(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table."""
    rule = ["---"] * len(heads)
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (heads, rule, *lines))
