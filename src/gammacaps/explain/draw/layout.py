"""Where each capsule stands in a drawing: layers from left to right, places of a grid as cells, others in a column."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gammacaps.explain.draw.svg import Point, shown
from gammacaps.explain.tree import Tree, TreeLayer

TOP = 56.0  # for the words above the layers
INPUT = 104.0  # the side of the input image
GAP = 124.0  # between layers
SPACING = 24.0  # of the capsules in a column
PICTURE = 48.0  # the same where they show pictures
TALL = 960.0  # above this a column of many capsules gets denser
LONGEST = 24  # letters of a class's name
BESIDE = 112.0  # the room for the names of capsules, right of them

Names = Mapping[tuple[int, int], str]  # of a capsule by its layer and its index: what people would call it


@dataclass(frozen=True)
class Column:
    """A layer's capsules: `spots` has the centre of each one drawn, `levels` the height at which its edges meet it."""

    left: float
    right: float
    top: float
    cell: float  # the side of a place; 0 where capsules have none
    radius: float  # of a capsule
    spots: Mapping[int, Point]
    levels: Mapping[int, float]
    names: Mapping[int, str] = field(default_factory=dict)  # to stand beside capsules

    @functools.cached_property
    def heights(self) -> Mapping[int, str]:
        """The levels as attributes."""
        return {i: shown(y) for i, y in self.levels.items()}

    @functools.cached_property
    def circles(self) -> Mapping[int, str]:
        """Each capsule's as attributes: the same in all drawings of a layout."""
        r = shown(self.radius)
        return {i: f'cx="{shown(x)}" cy="{shown(y)}" r="{r}"' for i, (x, y) in self.spots.items()}


@dataclass(frozen=True)
class Layout:
    width: float
    height: float
    columns: tuple[Column, ...]
    edges: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)  # found so far, by tree and layer


def lay_out(trees: Sequence[Tree], *, show_all: bool, pictures: bool, names: Names | None = None) -> Layout:
    """One layout for trees of one network, so that a capsule stands at the same spot in each of their drawings.

    `names` stand beside hidden capsules; a layer in which nothing has a name gets no room for them.
    """
    orders = ordered(trees, show_all)
    layers = trees[0].layers
    spacing = [PICTURE if pictures else min(SPACING, max(8.0, TALL / max(1, len(order)))) for order in orders]
    spacing[-1] = max(spacing[-1], SPACING)  # names need it
    heights = [
        cell_side(layer) * layer.grid[0] if has_places(layer) else space * len(order)
        for layer, order, space in zip(layers, orders, spacing, strict=True)
    ]
    body = max(*heights, INPUT + 80)
    columns: list[Column] = []
    x = INPUT + 36
    for l, (layer, order, space, height) in enumerate(zip(layers, orders, spacing, heights, strict=True)):
        if has_places(layer):
            column = grid_column(layer, order, x, TOP + (body - height) / 2)
        else:
            named = {i: name for (at, i), name in (names or {}).items() if at == l and 0 < l < len(layers) - 1}
            column = plain_column(order, x, body, space, named)
        columns.append(column)
        x = column.right + GAP
    letters = max(min(len(name), LONGEST) for name in trees[0].class_names)
    return Layout(x - GAP + max(116, 8 + 7.5 * (letters + 5)), TOP + body, tuple(columns))


def has_places(layer: TreeLayer) -> bool:
    return layer.grid != (1, 1)


def cell_side(layer: TreeLayer) -> float:
    """A place's side: wide enough for a dot of 4 a type, and for grids of few places wider."""
    return max(min(60.0, 372 / max(layer.grid)), 4.0 * math.ceil(math.sqrt(layer.types)))


def grid_column(layer: TreeLayer, order: Sequence[int], x: float, top: float) -> Column:
    """Each place a cell, in which every type has its own spot.

    Edges leave beside the grid, so that they cover no capsule: at the height of the place's row, and within it from
    the first column's at the top to the last column's at the bottom.
    """
    side, across = cell_side(layer), math.ceil(math.sqrt(layer.types))
    pitch = 0.86 * side / across
    empty = (across - math.ceil(layer.types / across)) * pitch / 2  # so that the types stand in the middle
    spots, levels = {}, {}
    for capsule in order:
        place, kind = divmod(capsule, layer.types)
        row, column = divmod(place, layer.grid[1])
        spots[capsule] = (
            x + side * (column + 0.07) + pitch * (kind % across + 0.5),
            top + side * (row + 0.07) + empty + pitch * (kind // across + 0.5),
        )
        levels[capsule] = top + side * (row + 0.1 + 0.8 * (column + 0.5) / layer.grid[1])
    return Column(x, x + side * layer.grid[1], top, side, 0.42 * pitch, spots, levels)


def plain_column(
    order: Sequence[int], x: float, body: float, space: float, names: Mapping[int, str] | None = None
) -> Column:
    """One below the other, in the middle of the height `body`; edges begin behind the names, if there are any."""
    radius = 0.38 * space
    step = min(body / max(1, len(order)), 1.5 * space)
    first = TOP + (body - step * (len(order) - 1)) / 2
    levels = {capsule: first + step * n for n, capsule in enumerate(order)}
    spots = {capsule: (x + radius, y) for capsule, y in levels.items()}
    right = x + 2 * radius + (BESIDE if names else 0.0)
    return Column(x, right, TOP, 0.0, radius, spots, levels, names or {})


def ordered(trees: Sequence[Tree], show_all: bool) -> list[list[int]]:
    """The capsules drawn of each layer, from top to bottom: all nodes, and the predicted classes.

    Classes keep their order. Below them capsules stand in the order of their parents, so that no edge between columns
    crosses another, and next to each other by the mean height of their own children.
    """
    last = len(trees[0].layers) - 1
    shown: list[set[int]] = []
    for l, layer in enumerate(trees[0].layers):
        every = range(len(layer.activations)) if show_all else (i for tree in trees for i in tree.nodes_of(l))
        shown.append({*every, *(tree.predicted for tree in trees if l == last)})
    heights = mean_heights(trees)
    orders: list[list[int]] = [sorted(shown[last])]
    for l in range(last - 1, -1, -1):
        above: dict[int | None, int] = {capsule: n for n, capsule in enumerate(orders[0])}
        parents = {i: node.parent for tree in reversed(trees) for i, node in tree.nodes_of(l).items()}
        key = {i: (above.get(parents.get(i), len(above)), heights.get((l, i), 0.0), i) for i in shown[l]}
        orders.insert(0, sorted(shown[l], key=key.__getitem__))
    return orders


def mean_heights(trees: Sequence[Tree]) -> dict[tuple[int, int], float]:
    """How far down a capsule's children stand in the image, from 0 to 1: their mean, weighed by their couplings."""
    sums: dict[tuple[int, int], tuple[float, float]] = {}  # of weighed heights, and of weights
    means: dict[tuple[int, int], float] = {}
    for l, layer in enumerate(trees[0].layers):
        across = layer.types * layer.grid[1]  # capsules in a row of places
        placed = has_places(layer)
        for node in (node for tree in trees for node in tree.nodes_of(l).values()):
            key = (l, node.index)
            if placed:
                mean = (node.index // across + 0.5) / layer.grid[0]
            else:
                weighed, weight = sums.get(key, (0.5, 1.0))
                mean = weighed / weight
            means[key] = mean
            if node.parent is not None and node.coupling is not None:
                above = (l + 1, node.parent)
                weighed, weight = sums.get(above, (0.0, 0.0))
                sums[above] = (weighed + node.coupling * mean, weight + node.coupling)
    return means
