"""Capsules as shapes: dots in a grid of places, discs with a number or a picture in a column."""

import functools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from torch import Tensor

from gammacaps.explain.difference import Difference
from gammacaps.explain.draw.layout import Column
from gammacaps.explain.draw.paths import Colours, leads_to
from gammacaps.explain.draw.svg import NEUTRAL, ON_STRONG, Point, name_of, picture, shown, tag, words
from gammacaps.explain.tree import Node, Tree

Pictures = Mapping[tuple[int, int], Tensor]  # of a capsule by its layer and its index: C H W in [0, 1]
LETTERS = 18  # of a name beside a capsule, in a line
Marks = Mapping[tuple[int, int], str]  # "changed parent", "appeared" or "vanished"


def marks_of(change: Difference) -> Marks:
    marks: dict[tuple[int, int], str] = {}
    for l, layer in enumerate(change.layers):
        marks |= {(l, i): "changed parent" for i, _, _ in layer.moved}
        marks |= {(l, i): "appeared" for i in layer.appeared}
        marks |= {(l, i): "vanished" for i in layer.vanished}
    return marks


def draw_capsules(
    tree: Tree, l: int, column: Column, colours: Colours, pictures: Pictures, marks: Marks
) -> Iterator[str]:
    """A layer's capsules on their spots, and the cells of its places."""
    ways, nodes, activations = leads_to(tree), tree.nodes_of(l), tree.layers[l].activations
    names = tree.names(l)
    above = tree.names(l + 1) if l + 1 < len(tree.layers) else ()
    safe = [escape(name) for name in above]
    if column.cell:
        yield cells(column.left, column.top, column.cell, tree.layers[l].grid)
    for capsule, spot in column.spots.items():
        node, mark = nodes.get(capsule), marks.get((l, capsule), "") if marks else ""
        if column.cell and node is not None and node.active and not mark:
            # Most of a drawing is these, so they are written without a tag's loops.
            opening, filled = plain_dot(l, capsule, column.circles[capsule], names[capsule], node.activation)
            yield f"{opening}{colours[ways[l, capsule]]}{filled}{tell_choice(node, safe)}</title></circle></g>"
            continue
        strength = activations[capsule]
        colour, active = colours[ways.get((l, capsule))], strength > tree.tau
        known = f" ({column.names[capsule]})" if capsule in column.names else ""
        hover = f"{names[capsule]}{known}: {strength:.2f}{tell_choice(node, above)}"
        hover += f", {mark}" if mark else ""
        image = pictures.get((l, capsule))
        if mark == "vanished":
            drawn = cross(spot, column, hover)
        elif column.cell:
            drawn = dot(spot, column.radius, colour, strength, active, mark, hover)
        elif image is not None:
            drawn = framed(spot, column.radius, colour, strength, active, mark, image, hover)
        else:
            drawn = disc(spot, column.radius, colour, strength, active, mark, str(capsule), hover)
        yield tag("g", drawn, data_capsule=name_of(l, capsule))
        if column.names:
            name = column.names.get(capsule, f"capsule {capsule}")
            yield tag("g", *beside(spot, column.radius, name, bool(known)), data_name_of=name_of(l, capsule))


def beside(spot: Point, r: float, name: str, known: bool) -> Iterator[str]:
    """A capsule's name on its right, in two lines where capsules stand far enough apart; faint where it is a number."""
    lines = name_lines(name, 2 if r > 8 else 1)
    x, top = spot[0] + r + 6, spot[1] + 4 - 5.75 * (len(lines) - 1)
    faint = {} if known else {"fill_opacity": 0.6}
    for n, line in enumerate(lines):
        yield words(line, x, top + 11.5 * n, size=11.5, **faint)


def name_lines(name: str, most: int, letters: int = LETTERS) -> list[str]:
    """A name in at most so many lines; where it is too long, a number at its end stays: "T-shirt, … (3)"."""
    number = re.search(r" \(\d+\)$", name)
    return textwrap.wrap(name, letters, max_lines=most, placeholder=f" …{number[0] if number else ''}")


@functools.lru_cache(64)
def cells(left: float, top: float, side: float, grid: tuple[int, int]) -> str:
    """The places of a grid, which are the same in all of a network's drawings of one height."""
    rows, across = grid
    box: dict[str, Any] = {"width": side - 2, "height": side - 2, "rx": 3, "fill": "none", "stroke": NEUTRAL}
    spots = [(left + side * (place % across) + 1, top + side * (place // across) + 1) for place in range(rows * across)]
    return "".join([tag("rect", x=x, y=y, **box, stroke_opacity=0.25) for x, y in spots])


def tell_choice(node: Node | None, above: Sequence[str]) -> str:
    """Which parent a capsule chose, for a pointer over it; `above` has the names of the next layer's."""
    if node is None or node.coupling is None or node.second is None:
        return ""
    parent = "no parent" if node.parent is None else above[node.parent]
    return f" → {parent} (coupling {node.coupling:.2f}, next {node.second:.2f})"


@functools.lru_cache(2**11)
def plain_dot(l: int, capsule: int, circle: str, name: str, strength: float) -> tuple[str, str]:
    """An active capsule of a grid before and after its colour, up to its choice: the same in all iterations."""
    opening = f'<g data-capsule="{name_of(l, capsule)}"><circle {circle} fill="'
    said = f"{escape(name)}: {strength:.2f}"
    return opening, f'" fill-opacity="{shown(0.3 + 0.7 * strength)}"><title>{said}'


def dot(spot: Point, r: float, colour: str, strength: float, active: bool, mark: str, hover: str) -> str:
    if not active:
        return shape(spot, 0.6 * r, mark, hover=hover, fill=NEUTRAL, fill_opacity=0.15)
    line = {"stroke": NEUTRAL, "stroke_width": min(1.2, 0.3 * r)} if mark == "changed parent" else {}
    return shape(spot, r, mark, hover=hover, fill=colour, fill_opacity=0.3 + 0.7 * strength, **line)


@functools.lru_cache(256)  # class capsules look the same in all of routing's iterations
def disc(spot: Point, r: float, colour: str, strength: float, active: bool, mark: str, label: str, hover: str) -> str:
    # The colour under the number never gets so strong that the number can't be read.
    filled = {"fill": colour, "fill_opacity": 0.05 + 0.65 * strength}
    above = {"class": ON_STRONG} if strength > 0.5 else {}
    number = words(label, spot[0], spot[1] + 3.5, size=10, text_anchor="middle", pointer_events="none", **above)
    return shape(spot, r, mark, hover=hover, **filled, **outline(colour, active, mark)) + (number if r > 8 else "")


def framed(
    spot: Point, r: float, colour: str, strength: float, active: bool, mark: str, image: Tensor, hover: str
) -> str:
    """A capsule's picture in a frame, the fainter the shorter the capsule, with a bar under it as long as it is.

    "new" stands over one that appeared.
    """
    (x, y), side = spot, 2 * r
    frame = tag("rect", x=x - r, y=y - r, width=side, height=side, fill="none", **outline(colour, active, ""))
    if mark == "changed parent":
        frame += tag("rect", x=x - r - 2, y=y - r - 2, width=side + 4, height=side + 4, fill="none", stroke=NEUTRAL)
    bar = tag("rect", x=x - r, y=y + r + 3, width=side * strength, height=3, fill=colour)
    new = words("new", x, y - r - 2, size=9, text_anchor="middle") if mark == "appeared" else ""
    return picture(image, x - r, y - r, side, hover=hover, opacity=0.35 + 0.65 * strength) + frame + bar + new


def cross(spot: Point, column: Column, hover: str) -> str:
    (x, y), r = spot, min(column.radius, 6.0)
    lines = f"M {x - r:.2f} {y - r:.2f} l {2 * r:.2f} {2 * r:.2f} m 0 {-2 * r:.2f} l {-2 * r:.2f} {2 * r:.2f}"
    width = 1.0 if column.cell else 2.0
    return tag("path", hover=hover, d=lines, fill="none", stroke=NEUTRAL, stroke_width=width, stroke_opacity=0.6)


def outline(colour: str, active: bool, mark: str) -> dict[str, Any]:
    """Dashed around a capsule that is not active, heavy and neutral around one that changed its parent."""
    changed = mark == "changed parent"
    line: dict[str, Any] = {"stroke": NEUTRAL if changed else colour, "stroke_width": 2.5 if changed else 1.5}
    return line if active else {**line, "stroke_dasharray": "2 3", "stroke_opacity": 0.7}


def shape(spot: Point, r: float, mark: str, **attributes: Any) -> str:
    """A circle; a square for a capsule that appeared."""
    x, y = spot
    if mark == "appeared":
        return tag("rect", x=x - r, y=y - r, width=2 * r, height=2 * r, **attributes)
    return tag("circle", cx=x, cy=y, r=r, **attributes)
