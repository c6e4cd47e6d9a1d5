"""Trees as the page shows them: without the input, which stands beside them, each capsule at one spot in all."""

from collections.abc import Sequence

from gammacaps.explain.draw.capsules import draw_capsules, marks_of
from gammacaps.explain.draw.figure import alternative, draw_classes, draw_heading, heaviest
from gammacaps.explain.draw.layout import INPUT, Layout, lay_out
from gammacaps.explain.draw.paths import Colours, colours_of, draw_edges, draw_old_edges
from gammacaps.explain.draw.svg import drawing
from gammacaps.explain.tree import Difference, ParseTree, difference

LEFT = INPUT + 28  # where the capsules begin


def draw_trees(images: Sequence[Sequence[ParseTree]], *, show_all: bool) -> list[list[str]]:
    """For each image, clean and attacked say, an SVG for each of routing's iterations; all have one layout.

    From the second image on, what differs from the first is marked.
    """
    trees = [tree for each in images for tree in each]
    layout = lay_out(trees, show_all=show_all, pictures=False)
    colours = colours_of([each[-1] for each in images])
    heavy = heaviest(trees, layout)
    drawn = []
    for place, each in enumerate(images):
        changes = [difference(before, tree) if place else None for before, tree in zip(images[0], each, strict=True)]
        drawn.append([draw_one(tree, layout, colours, heavy, found) for tree, found in zip(each, changes, strict=True)])
    return drawn


def draw_one(
    tree: ParseTree, layout: Layout, colours: Colours, heavy: Sequence[float], found: Difference | None
) -> str:
    marks = marks_of(found) if found else {}
    inside: list[str] = []
    for l in range(len(tree.layers) - 1):
        inside += draw_edges(tree, l, layout, colours, heavy[l])
        if found:
            inside += draw_old_edges(l, found.layers[l].moved, layout)
    for l, column in enumerate(layout.columns):
        inside += draw_capsules(tree, l, column, colours, {}, marks)
        inside += draw_heading(tree, l, layout)
    inside += draw_classes(tree, layout, colours)
    height = layout.height + 8
    return drawing(layout.width, height, alternative(tree), *inside, left=LEFT, role="group")
