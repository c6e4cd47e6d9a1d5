"""Trees as the page shows them: without the input, which stands beside them, each capsule at one spot in all."""

from collections.abc import Sequence

from gammacaps.explain.difference import Difference, difference
from gammacaps.explain.draw.capsules import draw_capsules, marks_of
from gammacaps.explain.draw.figure import alternative, draw_classes, draw_heading, heaviest
from gammacaps.explain.draw.layout import INPUT, Layout, Names, lay_out
from gammacaps.explain.draw.paths import OTHER, Colours, draw_edges, draw_old_edges
from gammacaps.explain.draw.svg import drawing
from gammacaps.explain.tree import Tree

LEFT = INPUT + 28  # where the capsules begin
# By a class's number, so that no image and no attack recolours it. Ten as far apart as a search found, to those who
# see red and green alike too, by hue and lightness; none is lost on white or on black, or looks like OTHER.
PALETTE = (
    *("#0072b2", "#d2b400", "#f05a1e", "#c369f0", "#00695a"),
    *("#96b4ff", "#c31e96", "#694bf0", "#c30f2d", "#69c3a5"),
)


def draw_trees(images: Sequence[Sequence[Tree]], *, show_all: bool, names: Names | None = None) -> list[list[str]]:
    """For each image, clean and attacked say, an SVG for each of routing's iterations; all have one layout.

    From the second image on, what differs from the first is marked.
    """
    trees = [tree for each in images for tree in each]
    layout = lay_out(trees, show_all=show_all, pictures=False, names=names)
    colours = class_colours(len(trees[0].scores))
    heavy = heaviest(trees, layout)
    drawn = []
    for place, each in enumerate(images):
        changes = [difference(before, tree) if place else None for before, tree in zip(images[0], each, strict=True)]
        drawn.append([draw_one(tree, layout, colours, heavy, one) for tree, one in zip(each, changes, strict=True)])
    return drawn


def class_colours(classes: int) -> Colours:
    """A class keeps its colour in every tree; from the eleventh on they come again."""
    return {None: OTHER, **{c: PALETTE[c % len(PALETTE)] for c in range(classes)}}


def draw_one(tree: Tree, layout: Layout, colours: Colours, heavy: Sequence[float], change: Difference | None) -> str:
    marks = marks_of(change) if change else {}
    inside: list[str] = []
    for l in range(len(tree.layers) - 1):
        inside += draw_edges(tree, l, layout, colours, heavy[l])
        if change:
            inside += draw_old_edges(l, change.layers[l].moved, layout)
    for l, column in enumerate(layout.columns):
        inside += draw_capsules(tree, l, column, colours, {}, marks)
        inside += draw_heading(tree, l, layout)
    inside += draw_classes(tree, layout, colours)
    height = layout.height + 8
    return drawing(layout.width, height, alternative(tree), *inside, left=LEFT, role="group")
