"""A parse tree as data: every active capsule and the parent that it chose (the paper's gamma-capsule network)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from gammacaps.short_repr import short_repr


@dataclass(frozen=True)
class TreeLayer:
    """A layer's capsules; with a grid, capsule (row, column, type) is (row * columns + column) * types + type."""

    name: str
    activations: tuple[float, ...]  # of all its capsules
    grid: tuple[int, int]  # rows and columns of places; (1, 1) where capsules have no place
    types: int  # capsules at each place

    __repr__ = short_repr


@dataclass(slots=True)  # a frozen one takes three times as long to make, and a tree has hundreds
class Node:
    """A capsule that is active, or that an active one chose. Only active capsules below the last layer choose."""

    layer: int
    index: int
    activation: float
    active: bool  # activation > tau
    chosen: bool  # it is the parent of an active capsule
    parent: int | None  # in the next layer; None where it does not choose, or where the largest coupling is shared
    coupling: float | None  # the largest; None where it does not choose
    second: float | None  # the second largest
    couplings: tuple[float, ...] | None  # to all parents, above the primary layer and where they are few


@dataclass(frozen=True, eq=False)
class Tree:
    """What one image's capsules chose, as plain data: what a drawing and a difference are made of."""

    image: Float[Tensor, "C H W"]
    layers: tuple[TreeLayer, ...]  # from the primary capsules to the class capsules
    nodes: tuple[Node, ...]  # by layer, then by index
    T: tuple[float, ...]  # of each routed layer, over all its lower capsules (equation 2 for this image)
    scores: tuple[float, ...]
    predicted: int
    tau: float
    class_names: tuple[str, ...]
    iteration: int | None = None  # the couplings are those of this iteration; None: of the last

    __repr__ = short_repr

    def nodes_of(self, layer: int) -> dict[int, Node]:
        """The nodes of a layer by their index."""
        return self._by_layer[layer]

    @functools.cached_property
    def _by_layer(self) -> list[dict[int, Node]]:
        layers: list[dict[int, Node]] = [{} for _ in self.layers]
        for node in self.nodes:
            layers[node.layer][node.index] = node
        return layers

    @functools.cached_property
    def ways(self) -> dict[tuple[int, int], int | None]:
        """The class at the end of each node's path from parent to parent; None where it ends before."""
        last = len(self.layers) - 1
        goals: dict[tuple[int, int], int | None] = {(last, i): i for i in range(len(self.scores))}
        for node in reversed(self.nodes):
            if node.layer < last:
                goals[node.layer, node.index] = None if node.parent is None else goals[node.layer + 1, node.parent]
        return goals

    def active(self, layer: int) -> int:
        """How many capsules of a layer are active."""
        return sum(activation > self.tau for activation in self.layers[layer].activations)

    def tell(self, layer: int, index: int) -> str:
        """A capsule in words: by its number, in a grid by its place and type, a class by its name."""
        return self.names(layer)[index]

    def names(self, layer: int) -> Sequence[str]:
        """All capsules of a layer in words."""
        if layer == len(self.layers) - 1:
            return self.class_names
        own = self.layers[layer]
        return _names(own.name, own.grid, own.types, len(own.activations))

    def to_json(self) -> dict[str, Any]:
        """Plain values, numbers to 4 digits; the nodes of a layer are columns, entry n of each telling of node n.

        format       1
        tau, predicted, scores, T, class_names, iteration: as above
        layers       a list, from the primary capsules up, each with
          name, grid, types, activations: as in `TreeLayer`
          nodes      index, active, chosen, parent, coupling, second, couplings: as in `Node`, a list each;
                     couplings is null as a whole where no node of the layer keeps them
        """
        columns_of = ("index", "active", "chosen", "parent", "coupling", "second", "couplings")
        layer_of = ("name", "activations", "grid", "types")
        fields = ("tau", "predicted", "scores", "T", "class_names", "iteration")
        layers = []
        for l, layer in enumerate(self.layers):
            nodes = self.nodes_of(l).values()
            columns: dict[str, Any] = {name: rounded([getattr(node, name) for node in nodes]) for name in columns_of}
            if all(entry is None for entry in columns["couplings"]):
                columns["couplings"] = None
            layers.append({**{name: rounded(getattr(layer, name)) for name in layer_of}, "nodes": columns})
        return {"format": 1, **{name: rounded(getattr(self, name)) for name in fields}, "layers": layers}


@functools.lru_cache(64)  # they don't hang on the image
def _names(name: str, grid: tuple[int, int], types: int, count: int) -> tuple[str, ...]:
    if grid == (1, 1):
        return tuple(f"{name} capsule {i}" for i in range(count))
    places = [f"{name} row {place // grid[1]}, column {place % grid[1]}" for place in range(count // types)]
    return tuple(f"{place}, type {kind}" for place in places for kind in range(types))


def rounded(value: Any) -> Any:
    """Numbers to 4 digits and tuples as lists, all the way down."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        # Numbers are looked at here, since a tree has thousands.
        return [round(v, 4) + 0.0 if type(v) is float else v if v is None else rounded(v) for v in value]  # no -0.0
    return round(value, 4) + 0.0 if isinstance(value, float) else value
