"""How the trees of two images differ: which capsules changed their parent, appeared or vanished."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from gammacaps.errors import InputError
from gammacaps.explain.tree import Tree, rounded
from gammacaps.short_repr import short_repr


@dataclass(frozen=True)
class LayerDifference:
    """What became of a layer's active capsules."""

    name: str
    same: tuple[int, ...]  # active in both trees, with the same parent
    moved: tuple[tuple[int, int | None, int | None], ...]  # active in both: capsule, its parent before and after
    appeared: tuple[int, ...]  # active in the second tree only
    vanished: tuple[int, ...]  # active in the first tree only

    __repr__ = short_repr


@dataclass(frozen=True)
class Difference:
    """How one tree differs from another, layer by layer, and the class that each predicts."""

    layers: tuple[LayerDifference, ...]
    predicted: tuple[int, int]

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        """Plain values: the fields as they are, and of each layer also how many there are of each kind."""
        kinds = ("same", "moved", "appeared", "vanished")
        layers = [
            {**dataclasses.asdict(layer), "counts": {kind: len(getattr(layer, kind)) for kind in kinds}}
            for layer in self.layers
        ]
        return rounded({"predicted": self.predicted, "layers": layers})


def difference(clean: Tree, attacked: Tree) -> Difference:
    """Which capsules changed their parent, appeared or vanished from the first tree to the second."""
    shapes = [[(layer.name, layer.grid, layer.types) for layer in tree.layers] for tree in (clean, attacked)]
    if shapes[0] != shapes[1]:
        raise InputError("The two trees are of networks of different shapes: compare two trees of one network.")
    if clean.tau != attacked.tau:
        raise InputError(
            f"The two trees call a capsule active above {clean.tau:g} and above {attacked.tau:g}: give both one tau."
        )
    layers = []
    for l, layer in enumerate(clean.layers):
        before, after = (
            {index: node.parent for index, node in tree.nodes_of(l).items() if node.active}
            for tree in (clean, attacked)
        )
        both = [i for i in before if i in after]
        layers.append(
            LayerDifference(
                layer.name,
                tuple(i for i in both if before[i] == after[i]),
                tuple((i, before[i], after[i]) for i in both if before[i] != after[i]),
                tuple(i for i in after if i not in before),
                tuple(i for i in before if i not in after),
            )
        )
    return Difference(tuple(layers), (clean.predicted, attacked.predicted))
