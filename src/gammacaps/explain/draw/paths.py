"""Where capsules' paths lead, and the edges that show it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gammacaps.explain.draw.layout import Layout
from gammacaps.explain.draw.svg import NEUTRAL, Point, curve, name_of
from gammacaps.explain.tree import ParseTree

Colours = Mapping[int | None, str]  # of what leads to a class; None: of what leads to none

# Told apart by the colour-blind, and seen on white as on black. The predicted class has the first.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9")
OTHER = "#8c8c8c"
WIDEST = 7.0  # an edge
FAINTEST = 0.02  # the smallest coupling to another than the parent that is drawn


@dataclass(frozen=True)
class Bundle:
    """The edges from one place, or one capsule in a column, to one parent, or to the place of several."""

    start: Point
    end: Point
    goal: int | None  # the class that they lead to
    capsules: tuple[int, ...]
    parents: tuple[int, ...]
    mass: float  # their couplings together


def leads_to(tree: ParseTree) -> dict[tuple[int, int], int | None]:
    """The class at the end of each node's path from parent to parent; None where it ends before."""
    ways: dict[tuple[int, int], int | None] = {(len(tree.layers) - 1, i): i for i in range(len(tree.scores))}
    for node in reversed(tree.nodes):
        if node.layer < len(tree.layers) - 1:
            way = None if node.parent is None else ways[node.layer + 1, node.parent]
            ways[node.layer, node.index] = way
    return ways


def colours_of(trees: Sequence[ParseTree]) -> Colours:
    """A colour each for the predicted classes and then those with the most capsules below; the others are grey."""
    below = Counter(goal for tree in trees for goal in leads_to(tree).values() if goal is not None)
    classes = dict.fromkeys([*(tree.predicted for tree in trees), *(c for c, _ in below.most_common())])
    named = dict(zip(classes, PALETTE, strict=False))
    return {None: OTHER, **{c: named.get(c, OTHER) for c in range(len(trees[0].scores))}}


def bundles(tree: ParseTree, l: int, layout: Layout) -> list[Bundle]:
    """The edges from layer l to the next, the heaviest first."""
    ways = leads_to(tree)
    lower, upper = layout.columns[l], layout.columns[l + 1]
    found: dict[tuple[Point, Point, int | None], list[tuple[int, int, float]]] = {}
    for node in tree.nodes_of(l).values():
        if node.parent is not None and node.coupling is not None:
            start, end = (lower.right, lower.levels[node.index]), (upper.left, upper.levels[node.parent])
            found.setdefault((start, end, ways[l, node.index]), []).append((node.index, node.parent, node.coupling))
    made = []
    for key, edges in found.items():
        capsules, parents, couplings = zip(*edges, strict=True)
        made.append(Bundle(*key, capsules, tuple(sorted(set(parents))), sum(couplings)))
    return sorted(made, key=lambda bundle: -bundle.mass)


def draw_edges(tree: ParseTree, l: int, layout: Layout, colours: Colours, heaviest: float) -> Iterator[str]:
    """Edges to parents, as wide as their couplings; where the others are known, those faintly behind them."""
    lower, upper = layout.columns[l], layout.columns[l + 1]
    for node in tree.nodes_of(l).values():
        for parent, coupling in enumerate(node.couplings or ()):
            if parent != node.parent and parent in upper.levels and coupling > FAINTEST:
                ends = (lower.right, lower.levels[node.index]), (upper.left, upper.levels[parent])
                yield curve(*ends, stroke=NEUTRAL, stroke_opacity=0.13, stroke_width=WIDEST * coupling)
    for bundle in bundles(tree, l, layout):
        yield curve(
            bundle.start,
            bundle.end,
            hover=tell_bundle(tree, l, bundle),
            data_from=" ".join(name_of(l, capsule) for capsule in bundle.capsules),
            data_to=" ".join(name_of(l + 1, parent) for parent in bundle.parents),
            stroke=colours[bundle.goal],
            stroke_opacity=0.45 if lower.cell else 0.75,
            stroke_width=max(0.5, WIDEST * bundle.mass / heaviest),
        )


def draw_old_edges(l: int, moved: Sequence[tuple[int, int | None, int | None]], layout: Layout) -> Iterator[str]:
    """Dashed edges to the parents that capsules of a column had before."""
    lower, upper = layout.columns[l], layout.columns[l + 1]
    for capsule, before, _ in moved if not lower.cell else ():
        if before is not None:
            ends = (lower.right, lower.levels[capsule]), (upper.left, upper.levels[before])
            yield curve(*ends, stroke=NEUTRAL, stroke_opacity=0.8, stroke_width=1.2, stroke_dasharray="3 4")


def tell_bundle(tree: ParseTree, l: int, bundle: Bundle) -> str:
    many = len(bundle.capsules)
    who = tree.tell(l, bundle.capsules[0]) if many == 1 else f"{many} capsules of one place"
    to = tree.tell(l + 1, bundle.parents[0]) if len(bundle.parents) == 1 else f"{len(bundle.parents)} parents"
    return f"{who} → {to}: coupling {bundle.mass:.2f}" + (" together" if many > 1 else "")
