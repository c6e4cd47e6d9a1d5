"""Where capsules' paths lead, and the edges that show it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gammacaps.explain.draw.layout import Layout
from gammacaps.explain.draw.svg import NEUTRAL, Point, curve, escaped, level, name_of, shown
from gammacaps.explain.tree import Tree

Colours = Mapping[int | None, str]  # of what leads to a class; None: of what leads to none

# Told apart by the colour-blind, and seen on white as on black. The predicted class has the first.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9")
OTHER = "#8c8c8c"
WIDEST = 7.0  # an edge
FAINTEST = 0.02  # the smallest coupling to another than the parent that is drawn


class Bundle(NamedTuple):
    """The edges from one place, or one capsule in a column, to one parent, or to the place of several."""

    start: Point
    end: Point
    goal: int | None  # the class that they lead to
    capsules: tuple[int, ...]
    parents: tuple[int, ...]
    mass: float  # their couplings together


def leads_to(tree: Tree) -> dict[tuple[int, int], int | None]:
    """The class at the end of each node's path from parent to parent; None where it ends before."""
    return tree.ways


def colours_of(trees: Sequence[Tree]) -> Colours:
    """A colour each for the predicted classes and then those with the most capsules below; the others are grey."""
    below = Counter(goal for tree in trees for goal in leads_to(tree).values() if goal is not None)
    classes = dict.fromkeys([*(tree.predicted for tree in trees), *(c for c, _ in below.most_common())])
    named = dict(zip(classes, PALETTE, strict=False))
    return {None: OTHER, **{c: named.get(c, OTHER) for c in range(len(trees[0].scores))}}


def bundles(tree: Tree, l: int, layout: Layout) -> list[Bundle]:
    """The edges from layer l to the next, the heaviest first."""
    known: list[Bundle] | None = layout.edges.get((tree, l))
    if known is not None:
        return known
    ways, lower, upper = leads_to(tree), layout.columns[l], layout.columns[l + 1]
    grouped: dict[
        tuple[float, float, int | None], list[tuple[int, int, float]]
    ] = {}  # by where they begin, end and lead
    for index, node in tree.nodes_of(l).items():
        if node.parent is not None and node.coupling is not None:
            key = (lower.levels[index], upper.levels[node.parent], ways[l, index])
            grouped.setdefault(key, []).append((index, node.parent, node.coupling))
    made = []
    for (start, end, goal), edges in grouped.items():
        capsules, parents, couplings = zip(*edges, strict=True)
        ends = (lower.right, start), (upper.left, end)
        made.append(Bundle(*ends, goal, capsules, tuple(sorted(set(parents))), sum(couplings)))
    layout.edges[tree, l] = made = sorted(made, key=lambda bundle: -bundle.mass)
    return made


def draw_edges(tree: Tree, l: int, layout: Layout, colours: Colours, heaviest: float) -> Iterator[str]:
    """Edges to parents, as wide as their couplings; where the others are known, those faintly behind them."""
    # Written without a tag's loops, as dots are: these are most of what a drawing has.
    lower, upper = layout.columns[l], layout.columns[l + 1]
    left, right, middle = shown(lower.right), shown(upper.left), shown((lower.right + upper.left) / 2)
    starts, ends = lower.heights, upper.heights
    faint = f'fill="none" stroke="{NEUTRAL}" stroke-opacity="0.13"'
    for index, node in tree.nodes_of(l).items():
        for parent, coupling in enumerate(node.couplings or ()):
            if coupling > FAINTEST and parent != node.parent and parent in ends:
                path = level(left, starts[index], middle, right, ends[parent])
                yield f'<path d="{path}" {faint} stroke-width="{shown(WIDEST * coupling)}"/>'
    opacity = 0.45 if lower.cell else 0.75
    for bundle in bundles(tree, l, layout):
        path = level(left, starts[bundle.capsules[0]], middle, right, ends[bundle.parents[0]])
        below = " ".join([name_of(l, capsule) for capsule in bundle.capsules])
        above = " ".join([name_of(l + 1, parent) for parent in bundle.parents])
        yield (
            f'<path d="{path}" fill="none" data-from="{below}" data-to="{above}" '
            f'stroke="{colours[bundle.goal]}" stroke-opacity="{opacity}" '
            f'stroke-width="{shown(max(0.5, WIDEST * bundle.mass / heaviest))}">'
            f"<title>{tell_bundle(tree, l, bundle)}</title></path>"
        )


def draw_old_edges(l: int, moved: Sequence[tuple[int, int | None, int | None]], layout: Layout) -> Iterator[str]:
    """Dashed edges to the parents that capsules of a column had before."""
    lower, upper = layout.columns[l], layout.columns[l + 1]
    for capsule, before, _ in moved if not lower.cell else ():
        if before is not None:
            ends = (lower.right, lower.levels[capsule]), (upper.left, upper.levels[before])
            yield curve(*ends, stroke=NEUTRAL, stroke_opacity=0.8, stroke_width=1.2, stroke_dasharray="3 4")


def tell_bundle(tree: Tree, l: int, bundle: Bundle) -> str:
    many = len(bundle.capsules)
    who = tree.tell(l, bundle.capsules[0]) if many == 1 else f"{many} capsules of one place"
    to = tree.tell(l + 1, bundle.parents[0]) if len(bundle.parents) == 1 else f"{len(bundle.parents)} parents"
    return f"{escaped(who)} → {escaped(to)}: coupling {bundle.mass:.2f}" + (" together" if many > 1 else "")
