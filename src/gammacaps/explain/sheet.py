"""A sheet of pictures: the inputs generated for all hidden and class capsules of a network, with what they serve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.explain.activate import Generated, activate_all, check_capsules
from gammacaps.explain.batches import named
from gammacaps.explain.draw.capsules import name_lines
from gammacaps.explain.examples import Served, classes_served
from gammacaps.explain.pictures import Row, grid_png
from gammacaps.short_repr import short_repr

ACROSS = 8  # pictures in a row
LINES, LETTERS = 2, 17  # of a capsule's name under its picture, at most


@dataclass(frozen=True, eq=False)
class Sheet:
    """Generated inputs by layer, each with its capsule's number and name."""

    layers: Mapping[str, Sequence[tuple[int, str, Generated]]]

    __repr__ = short_repr

    def png(self) -> bytes:
        """Under each picture the capsule's number, the length that it reaches, and its name."""
        rows = []
        for layer, capsules in self.layers.items():
            for first in range(0, len(capsules), ACROSS):
                some = capsules[first : first + ACROSS]
                captions = [f"{j}: {made.activation:.2f}\n{wrapped(name)}" for j, name, made in some]
                rows.append(Row([made.image for _, _, made in some], captions, layer if first == 0 else ""))
        return grid_png(rows, side=112)

    _repr_png_ = png


def sheet(
    model: nn.Module,
    images: Float[Tensor, "M C H W"],
    labels: Int[Tensor, "M"],
    *,
    class_names: Sequence[str] | None = None,
    **options: Any,
) -> Sheet:
    """Inputs for all hidden and class capsules; a hidden one is named by the classes whose images make it long.

    The options are those of `activate_all`, such as starts, steps and search.
    """
    network, _, _ = check_capsules(model, "class")
    names = named(class_names, network.classes)
    layers = {}
    for layer in network.layers[1:]:
        made = activate_all(network, layer, **options)
        words = names
        if layer != "class":
            served = classes_served(network, images, labels, layer, class_names=names)
            words = [name_of(served, j) for j in range(len(made))]
        layers[layer] = list(zip(range(len(made)), words, made, strict=True))
    return Sheet(layers)


def name_of(served: Served, capsule: int) -> str:
    """The classes that a capsule serves, or those that it does not where these are few."""
    names = dict(zip(served.classes, served.class_names, strict=True))
    serves = served.serves[capsule]
    others = [name for k, name in names.items() if k not in serves]
    if not serves:
        return "no class more than another"
    if 0 < len(others) < min(3, len(serves)):
        return f"all but {', '.join(others)}"
    return ", ".join(names[k] for k in serves)


def wrapped(name: str) -> str:
    """A name in lines that fit under a picture, cut where there are too many."""
    return "\n".join(name_lines(name, LINES, LETTERS))
