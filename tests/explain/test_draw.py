"""Drawings of parse trees: well-formed, complete, to scale, and without anything from outside."""

import base64
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from former_small import CONVOLUTION
from PIL import Image

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain.difference import difference
from gammacaps.explain.draw import draw, draw_pair, draw_routing
from gammacaps.explain.draw.capsules import name_lines
from gammacaps.explain.draw.layout import TOP, has_places, lay_out
from gammacaps.explain.draw.paths import OTHER, PALETTE, WIDEST, bundles, colours_of, leads_to
from gammacaps.explain.draw.svg import shown
from gammacaps.explain.parsing import ParseTree, parse_tree, parse_trees, routing_trees
from gammacaps.explain.tree import Node, TreeLayer

SVG = "{http://www.w3.org/2000/svg}"


def small_network(**changes):
    """Few capsules; its weights large enough that some are active and some are not."""
    shape = {**CONVOLUTION, "filters": 8, "primary_types": 2, "hidden": (6,), "decoder": ()}
    model = gammacaps.create("small", **{**shape, **changes})
    with torch.no_grad():
        model.primary.convolution.weight *= 4
        for layer in model.routed:
            layer.weight *= 4
    return model


def tree_of(primary, hidden, *, predicted=0, scores=(0.9, 0.05, 0.3), names=("shirt", "coat", "boot")):
    """A 2 x 2 grid with two types, four hidden capsules, three classes, by (length, parent, coupling) or None."""
    layers, nodes = [], []
    grids = {"primary": (2, 2), "hidden 1": (1, 1), "class": (1, 1)}
    columns = {"primary": primary, "hidden 1": hidden, "class": {c: (s, None, None) for c, s in enumerate(scores)}}
    chosen = set()
    for l, (name, count) in enumerate((("primary", 8), ("hidden 1", 4), ("class", 3))):
        capsules = columns[name]
        activations = tuple(capsules.get(i, (0.01, None, None))[0] for i in range(count))
        layers.append(TreeLayer(name, activations, grids[name], count // (grids[name][0] * grids[name][1])))
        for i in range(count):
            length, parent, coupling = capsules.get(i, (0.01, None, None))
            active = length > 0.1
            if active or i in chosen:
                second = None if coupling is None else 1 - coupling
                nodes.append(Node(l, i, length, active, i in chosen, parent, coupling, second, None))
        chosen = {node.parent for node in nodes if node.layer == l}
    image = torch.linspace(0, 1, 16).view(1, 4, 4)
    return ParseTree(image, tuple(layers), tuple(nodes), (0.5, 0.25), tuple(scores), predicted, 0.1, names)


# Places 0 (capsules 0, 1), 1 (capsule 2) and 3 (capsules 6, 7); hidden 3 is chosen, but not active.
PRIMARY = {0: (0.5, 1, 0.8), 1: (0.6, 1, 0.6), 2: (0.4, 2, 0.9), 6: (0.3, 3, 0.5), 7: (0.9, 1, 0.7)}
HIDDEN = {1: (0.8, 0, 0.9), 2: (0.4, 1, 0.6), 3: (0.05, None, None)}


def parts(svg, name):
    return list(ET.fromstring(svg).iter(SVG + name))


def titles(svg):
    return [title.text for title in parts(svg, "title")]


def test_edges_of_one_place_to_one_parent_are_one_as_wide_as_their_couplings():
    tree = tree_of(PRIMARY, HIDDEN)
    layout = lay_out([tree], show_all=False, pictures=False)
    found = bundles(tree, 0, layout)
    assert [(b.capsules, b.parents, b.goal) for b in found] == [
        ((0, 1), (1,), 0),  # 0.8 + 0.6, the heaviest first
        ((2,), (2,), 1),
        ((7,), (1,), 0),
        ((6,), (3,), None),  # its parent is not active and chooses none
    ]
    assert [b.mass for b in found] == pytest.approx([1.4, 0.9, 0.7, 0.5])
    paths = [p for p in parts(draw(tree), "path") if p.find(SVG + "title") is not None]
    widths = [float(p.get("stroke-width")) for p in paths]
    primary = [WIDEST * mass / 1.4 for mass in (1.4, 0.9, 0.7, 0.5)]
    hidden = [WIDEST * 0.9, WIDEST * 0.6]
    assert widths == pytest.approx(primary + hidden, abs=0.01)
    assert [p.get("stroke") for p in paths] == [PALETTE[0], PALETTE[1], PALETTE[0], OTHER, PALETTE[0], PALETTE[1]]
    assert "2 capsules of one place → hidden 1 capsule 1: coupling 1.40 together" in titles(draw(tree))
    assert "hidden 1 capsule 2 → coat: coupling 0.60" in titles(draw(tree))


def test_paths_lead_to_classes_and_the_predicted_has_the_first_colour():
    tree = tree_of(PRIMARY, HIDDEN, predicted=2)
    ways = leads_to(tree)
    assert [ways[0, i] for i in (0, 1, 2, 6, 7)] == [0, 0, 1, None, 0]
    assert (ways[1, 1], ways[1, 3], ways[2, 2]) == (0, None, 2)
    assert colours_of([tree]) == {None: OTHER, 2: PALETTE[0], 0: PALETTE[1], 1: PALETTE[2]}


def test_every_node_is_drawn_once_with_its_values_and_its_strength():
    tree = tree_of(PRIMARY, HIDDEN)
    circles = {c.find(SVG + "title").text: c for c in parts(draw(tree), "circle")}
    assert len(circles) == len(tree.nodes) == 5 + 3 + 3
    strong = circles["primary row 1, column 1, type 1: 0.90 → hidden 1 capsule 1 (coupling 0.70, next 0.30)"]
    weak = circles["primary row 1, column 1, type 0: 0.30 → hidden 1 capsule 3 (coupling 0.50, next 0.50)"]
    assert float(strong.get("fill-opacity")) > float(weak.get("fill-opacity"))
    assert circles["hidden 1 capsule 3: 0.05"].get("stroke-dasharray") is not None
    assert circles["hidden 1 capsule 1: 0.80 → shirt (coupling 0.90, next 0.10)"].get("stroke-dasharray") is None
    assert len(parts(draw(tree, show_all=True), "circle")) == 8 + 4 + 3


def test_capsules_stand_in_their_cells_and_in_the_order_of_their_parents():
    hidden = {0: (0.8, 2, 0.9), 1: (0.8, 0, 0.9), 2: (0.4, 1, 0.6), 3: (0.05, None, None)}
    tree = tree_of(PRIMARY, hidden)
    primary, column, classes = lay_out([tree], show_all=False, pictures=False).columns
    for capsule, (x, y) in primary.spots.items():
        row, place = divmod(capsule // 2, 2)
        assert place * primary.cell < x - primary.left < (place + 1) * primary.cell
        assert row * primary.cell < y - primary.top < (row + 1) * primary.cell
    assert list(column.spots) == [1, 2, 0, 3]  # to classes 0, 1, 2 and to none
    assert list(classes.spots) == [0, 1, 2]
    assert all(y > TOP for _, y in column.spots.values())


def test_no_edges_between_columns_cross():
    model = small_network(hidden=(12, 7))
    tree = parse_tree(model, torch.rand(1, 28, 28), tau=0.02)
    columns = lay_out([tree], show_all=False, pictures=False).columns
    for l in (1, 2):
        ends = [
            (columns[l].levels[n.index], columns[l + 1].levels[n.parent])
            for n in tree.nodes_of(l).values()
            if n.parent is not None
        ]
        assert len(ends) > 3
        assert all(b0 <= b1 for (_, b0), (_, b1) in zip(sorted(ends), sorted(ends)[1:], strict=False))


def every_drawing(model, **options):
    images = torch.rand(2, *model.config.image_shape)
    clean, attacked = parse_trees(model, images, tau=0.2)
    yield draw(clean, **options)
    yield draw_pair(clean, attacked, **options)
    yield draw_routing(routing_trees(model, images[0], tau=0.2), **options)


@pytest.mark.parametrize(
    "make",
    [
        small_network,
        lambda: small_network(hidden=(), classes=3),
        lambda: small_network(hidden=(5, 40), image_shape=(2, 31, 24), classes=2),  # two channels, not square
        lambda: gammacaps.create(
            "matrix", image_shape=(3, 14, 14), classes=3, filters=8, primary_types=2, types=(3, 3)
        ),
    ],
)
@pytest.mark.parametrize("show_all", [False, True])
def test_drawings_of_any_network_are_whole_and_stay_in_their_frame(make, show_all):
    for svg in every_drawing(make(), show_all=show_all):
        root = ET.fromstring(svg)
        left, top, width, height = map(float, root.get("viewBox").split())
        assert (left, top) == (0, 0)
        assert root.get("role") == "img"
        assert "taken for" in root.get("aria-label")
        assert "nan" not in re.sub('base64,[^"]*', "", svg)
        for group in (root, *root.iter(SVG + "g")):
            moved = re.match(r"translate\((\S+) (\S+)\)", group.get("transform", "translate(0 0)"))
            right, below = width - float(moved[1]), height - float(moved[2])
            for c in group.findall(SVG + "circle"):
                x, y, r = (float(c.get(name)) for name in ("cx", "cy", "r"))
                assert 0 < x - r < x + r < right
                assert 0 < y - r < y + r < below


def test_drawings_need_nothing_from_outside_and_take_the_page_s_colour():
    for svg in every_drawing(small_network(), pictures={(1, 0): torch.rand(3, 5, 5)}):
        root = ET.fromstring(svg)
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", svg)
        assert not {e.tag for e in root.iter()} & {SVG + "script", SVG + "foreignObject", SVG + "a", SVG + "use"}
        assert all(image.get("href").startswith("data:image/png;base64,") for image in root.iter(SVG + "image"))
        assert not any("id" in e.attrib for e in root.iter())
        assert {t.get("fill") for t in root.iter(SVG + "text")} == {"currentColor"}


def test_names_are_escaped_and_long_ones_cut():
    names = ("<b>&\"'", "a class whose name goes on and on", "boot")
    svg = draw(tree_of(PRIMARY, HIDDEN, names=names))
    shown = [text.text for text in parts(svg, "text")]
    assert "<b>&\"' 0.90" in shown
    assert "a class whose name goes… 0.05" in shown
    assert "hidden 1 capsule 2 → a class whose name goes on and on: coupling 0.60" in titles(svg)


def test_the_input_and_the_pictures_are_shown():
    tree = tree_of(PRIMARY, HIDDEN)
    plain, pictured = draw(tree), draw(tree, pictures={(1, 2): torch.rand(1, 6, 6), (2, 0): torch.rand(3, 6, 6)})
    assert len(parts(plain, "image")) == 1
    images = parts(pictured, "image")
    assert len(images) == 3
    assert images[1].find(SVG + "title").text.startswith("hidden 1 capsule 2: 0.40")
    assert len(parts(pictured, "circle")) == len(parts(plain, "circle")) - 2


def test_a_png_holds_the_very_pixels():
    image = parts(draw(tree_of(PRIMARY, HIDDEN)), "image")[0]
    pixels = Image.open(io.BytesIO(base64.b64decode(image.get("href").split(",")[1])))
    expected = np.round(np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4) * 255)
    assert np.array_equal(np.asarray(pixels), expected)


def test_a_pair_marks_what_changed():
    clean = tree_of(PRIMARY, HIDDEN)
    # Capsule 0 vanishes, 3 appears, 2 changes its parent; hidden 2 goes from class 1 to class 2.
    after = {i: PRIMARY[i] for i in (1, 6, 7)} | {2: (0.4, 1, 0.9), 3: (0.7, 1, 0.8)}
    attacked = tree_of(after, {**HIDDEN, 2: (0.4, 2, 0.6)}, predicted=2, scores=(0.3, 0.05, 0.9))
    svg = draw_pair(clean, attacked)
    marked = {}
    for e in ET.fromstring(svg).iter():
        title = e.find(SVG + "title")
        for mark in ("changed parent", "appeared", "vanished"):
            if title is not None and title.text.endswith(", " + mark):
                marked.setdefault(mark, []).append((e.tag.removeprefix(SVG), title.text.split(":")[0]))
    assert marked == {
        "vanished": [("path", "primary row 0, column 0, type 0")],
        "appeared": [("rect", "primary row 0, column 1, type 1")],
        "changed parent": [("circle", "primary row 0, column 1, type 0"), ("circle", "hidden 1 capsule 2")],
    }
    dashed = [p for p in parts(svg, "path") if p.get("stroke-dasharray")]
    assert len(dashed) == 1  # hidden 2's old edge
    line = "Taken for shirt → boot. primary: 1 changed parent, 1 appeared, 1 vanished. hidden 1: 1 changed parent."
    assert line in ET.fromstring(svg).get("aria-label")
    assert line in " ".join(text.text for text in parts(svg, "text"))


def test_pictures_in_a_pair_keep_their_marks():
    clean = tree_of(PRIMARY, {1: HIDDEN[1], 2: HIDDEN[2]})
    attacked = tree_of(PRIMARY, {0: (0.5, 0, 0.8), 1: HIDDEN[1], 2: (0.4, 2, 0.6)})
    pictures = {(1, i): torch.rand(1, 6, 6) for i in range(4)}
    svg = draw_pair(clean, attacked, pictures=pictures)
    assert [text.text for text in parts(svg, "text")].count("new") == 1  # hidden 0
    root = ET.fromstring(svg)
    neutral = [r for r in root.find(SVG + "g[@transform]").iter(SVG + "rect") if r.get("stroke") == "currentColor"]
    assert len(neutral) == 4 + 1  # the cells, and the line around hidden 2


def test_a_capsule_stands_at_the_same_spot_in_both_trees():
    model = small_network(hidden=(12,))
    clean, attacked = parse_trees(model, torch.rand(2, 1, 28, 28), tau=0.3)
    assert any(layer.appeared or layer.vanished for layer in difference(clean, attacked).layers)
    root = ET.fromstring(draw_pair(clean, attacked))
    (right,) = root.findall(SVG + "g[@transform]")
    spots = []
    for side in (root, right):
        found = {}
        for c in side.findall(f"{SVG}g[@data-capsule]/{SVG}circle"):
            found[c.find(SVG + "title").text.split(":")[0]] = (c.get("cx"), c.get("cy"))
        spots.append(found)
    both = spots[0].keys() & spots[1].keys()
    assert len(both) > 10
    assert all(spots[0][name] == spots[1][name] for name in both)


def test_capsules_and_edges_are_named_for_a_page_to_act_on():
    root = ET.fromstring(draw(tree_of(PRIMARY, HIDDEN)))
    groups = list(root.iter(SVG + "g"))
    named = {g.get("data-capsule"): g.find(SVG + "circle") for g in groups if g.get("data-capsule")}
    assert [g.get("data-name-of") for g in groups if g.get("data-name-of")] == ["2.0", "2.1", "2.2"]
    assert set(named) == {"0.0", "0.1", "0.2", "0.6", "0.7", "1.1", "1.2", "1.3", "2.0", "2.1", "2.2"}
    assert named["1.2"].find(SVG + "title").text.startswith("hidden 1 capsule 2:")
    edges = [(p.get("data-from"), p.get("data-to")) for p in root.iter(SVG + "path") if p.get("data-from")]
    assert edges[0] == ("0.0 0.1", "1.1")
    assert ("1.2", "2.1") in edges


def test_a_name_that_is_too_long_keeps_the_number_that_tells_it_from_another():
    assert name_lines("T-shirt, Pullover and 4 more", 2) == ["T-shirt, Pullover", "and 4 more"]
    assert name_lines("T-shirt, Pullover and 4 more", 1) == ["T-shirt, …"]
    assert name_lines("T-shirt, Pullover and 4 more (12)", 1) == ["T-shirt, … (12)"]
    assert name_lines("shoes (3)", 1) == ["shoes (3)"]


def test_a_drawing_is_the_same_each_time():
    tree = tree_of(PRIMARY, HIDDEN)
    assert draw(tree) == draw(tree)


def test_layers_without_places_are_columns():
    assert not has_places(TreeLayer("hidden 1", (0.1,), (1, 1), 1))
    layout = lay_out([tree_of(PRIMARY, HIDDEN)], show_all=False, pictures=False)
    assert [column.cell > 0 for column in layout.columns] == [True, False, False]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda tree: draw(tree, pictures={(1, 4): torch.rand(1, 3, 3)}), "no capsule 4 in a layer 1.*correct the key"),
        (lambda tree: draw(tree, pictures={(3, 0): torch.rand(1, 3, 3)}), "no capsule 0 in a layer 3"),
        (lambda tree: draw(tree, pictures={(1, 0): torch.rand(3, 3)}), r"has the shape \(3, 3\): give one \(C, H, W\)"),
        (lambda tree: draw_routing([]), "Only trees of iterations.*give those of routing_trees"),
        (lambda tree: draw_routing([tree]), "Only trees of iterations"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call(tree_of(PRIMARY, HIDDEN))


def test_numbers_in_a_drawing_are_as_short_as_can_be_seen():
    values = [k / 777 for k in range(-9000, 9000, 7)] + [9.994, 9.996, 99.96, 1234.5, -0.0, -0.001, 12.0]
    assert [shown(value) for value in values] == [
        f"{round(value, 1 if abs(value) >= 10 else 2) + 0.0:g}" for value in values
    ]


def test_names_stand_beside_hidden_capsules_and_edges_begin_behind_them():
    tree = tree_of(PRIMARY, HIDDEN)
    named = draw(tree, names={(1, 1): "clothes with long sleeves", (0, 0): "no", (2, 0): "no"})
    texts = [(text.text, float(text.get("x"))) for text in parts(named, "text")]
    at = dict(texts)
    assert {"clothes with long", "sleeves", "capsule 2", "capsule 3"} <= set(at)
    assert "no" not in at
    assert "hidden 1 capsule 1 (clothes with long sleeves): 0.80 → shirt (coupling 0.90, next 0.10)" in titles(named)
    starts = [float(p.get("d").split()[1]) for p in parts(named, "path") if (p.get("data-from") or "").startswith("1.")]
    assert starts
    assert min(starts) > at["clothes with long"] + 90  # of letters
    assert "(clothes" not in draw(tree)
    plain, wide = (lay_out([tree], show_all=False, pictures=False, names=n) for n in (None, {(1, 1): "shoes"}))
    assert wide.width > plain.width
    assert lay_out([tree], show_all=False, pictures=False, names={}).width == plain.width
    for drawing in (draw_pair(tree, tree, names={(1, 1): "<shoes>"}), draw(tree, names={(1, 1): "<shoes>"})):
        assert "&lt;shoes&gt;" in drawing
