"""A parse tree as a drawing, alone or beside another, and the words around it."""

import functools
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from gammacaps.errors import InputError
from gammacaps.explain.difference import Difference, LayerDifference, difference
from gammacaps.explain.draw.capsules import Marks, Pictures, draw_capsules, marks_of
from gammacaps.explain.draw.layout import INPUT, LONGEST, TOP, Layout, Names, lay_out
from gammacaps.explain.draw.paths import Colours, bundles, colours_of, draw_edges, draw_old_edges
from gammacaps.explain.draw.svg import NEUTRAL, drawing, name_of, picture, tag, words
from gammacaps.explain.tree import Tree

KEY = (
    "Colour: the class that a path leads to, grey for none or another. Strength, and the bar under a picture: "
    "activation; dashed: not active. Width: coupling, of all capsules of a place together; faint grey: weaker ones."
)
MARKS = "On the right — outlined: changed parent (dashed edge: the old one); square, or new: appeared; cross: vanished."


def draw(tree: Tree, *, pictures: Pictures | None = None, show_all: bool = False, names: Names | None = None) -> str:
    """A parse tree as an SVG: the input, its primary capsules by their places, and the parents that capsules chose.

    Each capsule has the colour of the class that its path leads to and the strength of its activation. The edges from
    the capsules of one place to one parent are drawn as one, as wide as their couplings together.

    Args:
        pictures: images (C, H, W) to show in capsules, by (layer's index, capsule), such as what activates them;
            capsules of a grid are too small for one.
        show_all: also draw the capsules that are neither active nor chosen.
        names: what hidden capsules stand for, by (layer's index, capsule), to be written beside them.
    """
    check_pictures(tree, pictures)
    layout = lay_out([tree], show_all=show_all, pictures=bool(pictures), names=names)
    inside = figure(tree, layout, colours_of([tree]), heaviest([tree], layout), pictures or {}, "input")
    key, height = paragraph(KEY, layout.height + 20, layout.width)
    return drawing(layout.width, height, alternative(tree), *inside, *key)


def draw_pair(
    clean: Tree,
    attacked: Tree,
    *,
    pictures: Pictures | None = None,
    show_all: bool = False,
    names: Names | None = None,
) -> str:
    """The trees of a clean and of an attacked image side by side, each capsule at the same spot in both.

    On the right a capsule that changed its parent has an outline, one that appeared is a square (a picture: marked
    "new"), one that vanished a cross; dashed edges lead to the parents that capsules in columns had before.
    """
    change = difference(clean, attacked)
    check_pictures(clean, pictures)
    trees = [clean, attacked]
    layout = lay_out(trees, show_all=show_all, pictures=bool(pictures), names=names)
    common = (layout, colours_of(trees), heaviest(trees, layout), pictures or {})
    left = figure(clean, *common, "clean")
    right = figure(attacked, *common, "attacked", change)
    apart = layout.width + 20
    changed = tell_difference(clean, change)
    first, height = paragraph(changed, layout.height + 28, apart + layout.width, size=15, font_weight="bold")
    second, height = paragraph(f"{MARKS} {KEY}", height + 4, apart + layout.width, size=13)
    description = f"Clean image: {alternative(clean)} Attacked image: {alternative(attacked)} {changed}"
    shifted = tag("g", *right, transform=f"translate({apart:g} 0)")
    return drawing(apart + layout.width, height, description, *left, shifted, *first, *second)


def draw_routing(
    trees: Sequence[Tree], *, pictures: Pictures | None = None, show_all: bool = False, names: Names | None = None
) -> str:
    """The trees of routing's iterations, as `routing_trees` gives them, one below the other."""
    if not trees or any(tree.iteration is None for tree in trees):
        raise InputError("Only trees of iterations can be drawn so: give those of routing_trees(model, image).")
    check_pictures(trees[0], pictures)
    layout = lay_out(trees, show_all=show_all, pictures=bool(pictures), names=names)
    common = (layout, colours_of(trees), heaviest(trees, layout), pictures or {})
    apart = layout.height + 24
    figures = [
        tag("g", *figure(tree, *common, f"iteration {tree.iteration}"), transform=f"translate(0 {apart * n:g})")
        for n, tree in enumerate(trees)
    ]
    key, height = paragraph(KEY, apart * len(trees), layout.width)
    description = " ".join(f"Iteration {tree.iteration}: {alternative(tree)}" for tree in trees)
    return drawing(layout.width, height, description, *figures, *key)


def figure(
    tree: Tree,
    layout: Layout,
    colours: Colours,
    heavy: Sequence[float],
    pictures: Pictures,
    title: str,
    change: Difference | None = None,
) -> Iterator[str]:
    """One tree in its layout; with a difference, what changed is marked."""
    marks: Marks = marks_of(change) if change else {}
    yield from draw_input(tree, layout, title)
    for l in range(len(tree.layers) - 1):
        yield from draw_edges(tree, l, layout, colours, heavy[l])
        if change:
            yield from draw_old_edges(l, change.layers[l].moved, layout)
    for l, column in enumerate(layout.columns):
        yield from draw_capsules(tree, l, column, colours, pictures, marks)
        yield from draw_heading(tree, l, layout)
    yield from draw_classes(tree, layout, colours)


def check_pictures(tree: Tree, pictures: Pictures | None) -> None:
    for (l, capsule), image in (pictures or {}).items():
        if not (0 <= l < len(tree.layers) and 0 <= capsule < len(tree.layers[l].activations)):
            raise InputError(f"There is no capsule {capsule} in a layer {l} to show a picture in: correct the key.")
        if image.dim() != 3:
            raise InputError(
                f"The picture of capsule {capsule} in layer {l} has the shape {tuple(image.shape)}: give one (C, H, W)."
            )


def heaviest(trees: Sequence[Tree], layout: Layout) -> list[float]:
    """The heaviest bundle of edges above each layer, and at least the 1 of a single capsule."""
    return [
        max([1.0, *(bundle.mass for tree in trees for bundle in bundles(tree, l, layout))])
        for l in range(len(trees[0].layers) - 1)
    ]


def draw_input(tree: Tree, layout: Layout, title: str) -> Iterator[str]:
    """The image, and under it what it is taken for."""
    top = (TOP + layout.height - INPUT) / 2
    yield words(title, 0, top - 8, size=13, font_weight="bold")
    yield picture(tree.image, 0, top, INPUT)
    yield words("taken for", 0, top + INPUT + 18, size=11, fill_opacity=0.75)
    yield words(short(tree.class_names[tree.predicted], 16), 0, top + INPUT + 34, size=13, font_weight="bold")


def draw_heading(tree: Tree, l: int, layout: Layout) -> Iterator[str]:
    """A layer's name and how many of its capsules are active; after it the T of its couplings."""
    layer, column = tree.layers[l], layout.columns[l]
    middle = (column.left + column.right) / 2
    yield words(layer.name, middle, 16, size=13, text_anchor="middle", font_weight="bold")
    yield words(f"{tree.active(l)} of {len(layer.activations)} active", middle, 32, size=11, text_anchor="middle")
    if l < len(tree.T):
        between = (column.right + layout.columns[l + 1].left) / 2
        yield words(f"T {tree.T[l]:.2f}", between, 16, size=11, text_anchor="middle", fill_opacity=0.75)


def draw_classes(tree: Tree, layout: Layout, colours: Colours) -> Iterator[str]:
    """The names of the classes and a bar for each score."""
    column, last = layout.columns[-1], len(tree.layers) - 1
    for c, (_, y) in column.spots.items():
        said = f"{short(tree.class_names[c], LONGEST)} {tree.scores[c]:.2f}"
        drawn = draw_class(said, tree.scores[c], column.right + 8, y, colours[c], c == tree.predicted)
        yield tag("g", drawn, data_name_of=name_of(last, c))


@functools.lru_cache(256)  # a class has the same score in all of routing's iterations
def draw_class(said: str, score: float, x: float, y: float, colour: str, predicted: bool) -> str:
    bar: dict[str, Any] = {"x": x, "y": y + 5, "height": 4, "rx": 2}
    return (
        words(said, x, y, size=13, **({"font_weight": "bold"} if predicted else {}))
        + tag("rect", **bar, width=100.0, fill=NEUTRAL, fill_opacity=0.12)
        + tag("rect", **bar, width=100 * score, fill=colour)
    )


def paragraph(text: str, y: float, width: float, *, size: float = 11, **attributes: Any) -> tuple[list[str], float]:
    """Lines of text that fit a width, and where the next may begin."""
    lines = textwrap.wrap(text, max(20, int(width / (0.56 * size))))
    drawn = [words(line, 0, y + 1.4 * size * n, size=size, **attributes) for n, line in enumerate(lines)]
    return drawn, y + 1.4 * size * len(lines)


def short(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"


def alternative(tree: Tree) -> str:
    """The drawing in words, for those who can't see it."""
    score = tree.scores[tree.predicted]
    said = [f"Parse tree of an image taken for {tree.class_names[tree.predicted]} (score {score:.2f})."]
    for l, layer in enumerate(tree.layers):
        said.append(f"Layer {layer.name}: {tree.active(l)} of {len(layer.activations)} capsules are active")
        said[-1] += f", T {tree.T[l]:.2f}." if l < len(tree.T) else "."
    return " ".join(said)


def tell_difference(clean: Tree, change: Difference) -> str:
    """What changed, in a line."""
    before, after = (clean.class_names[c] for c in change.predicted)
    said = [f"Taken for {before} → {after}." if before != after else f"Taken for {before} in both."]
    for layer in change.layers:
        said.append(f"{layer.name}: {count_changes(layer) or 'nothing changed'}.")
    return " ".join(said)


def count_changes(layer: LayerDifference) -> str:
    """How many capsules of a layer changed, by kind; empty where none did."""
    kinds = {"changed parent": layer.moved, "appeared": layer.appeared, "vanished": layer.vanished}
    return ", ".join(f"{len(which)} {kind}" for kind, which in kinds.items() if which)
