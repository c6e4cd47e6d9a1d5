"""Parse trees: against loops over the couplings, against routing by hand, and on trees small enough to write down."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from former_small import CONVOLUTION
from independent import routing, scores

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain.difference import difference
from gammacaps.explain.parsing import ParseTree, parse_tree, parse_trees, routing_trees
from gammacaps.explain.tree import Node, TreeLayer


def small_network(**changes):
    """Few capsules; its weights large enough that some are active and some are not."""
    shape = {**CONVOLUTION, "filters": 8, "primary_types": 2, "hidden": (6,), "decoder": ()}
    model = gammacaps.create("small", **{**shape, **changes})
    with torch.no_grad():
        model.primary.convolution.weight *= 4
        for layer in model.routed:
            layer.weight *= 4
    return model


def matrix_network():
    return gammacaps.create("matrix", image_shape=(1, 14, 14), classes=3, filters=8, types=(3, 3))


def images_for(model, count=3):
    return torch.rand(count, *model.config.image_shape)


def chosen_by_loops(couplings, i):
    """A capsule's parent, its largest coupling and the next, looking at one after the other; None for a tie."""
    parent, first, second = None, -1.0, -1.0
    for j, c in enumerate(couplings[i]):
        if c > first:
            parent, first, second = j, c, first
        elif c > second:
            second = c
    return (parent if first > second else None), first, second


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        small_network,
        lambda: small_network(hidden=(5, 4), image_shape=(3, 30, 24), classes=4),  # colour, not square, two layers
        lambda: small_network(hidden=(), routing="rba"),
        lambda: small_network(hidden=(70,)),  # too many parents to keep all couplings to them
        matrix_network,
    ],
)
def test_the_tree_is_what_loops_find_in_the_couplings(make):
    model = make()
    images, tau = images_for(model), 0.3
    with torch.no_grad():
        parse = model.parse(images)
    for b, tree in enumerate(parse_trees(model, images, tau=tau)):
        expected, parents = {}, set()
        for l, activations in enumerate(parse.activations):
            found = set()
            for i, activation in enumerate(activations[b].tolist()):
                choice = (None, None, None)
                if activation > tau and l < len(parse.layers) - 1:
                    choice = chosen_by_loops(parse.couplings[l][b].tolist(), i)
                    found |= {choice[0]} - {None}
                if activation > tau or i in parents:
                    expected[l, i] = (activation, activation > tau, i in parents, *choice)
            parents = found
        assert {(n.layer, n.index): dataclasses.astuple(n)[2:-1] for n in tree.nodes} == expected
        assert [(n.layer, n.index) for n in tree.nodes] == sorted(expected)
        assert any(n.parent is not None for n in tree.nodes)
        for n in tree.nodes:
            keeps = n.active and 0 < n.layer < len(parse.layers) - 1 and len(parse.activations[n.layer + 1][b]) <= 64
            assert n.couplings == (tuple(parse.couplings[n.layer][b, n.index].tolist()) if keeps else None)
        assert tree.scores == pytest.approx(parse.scores[b].tolist())
        assert tree.predicted == parse.scores[b].argmax()
        assert torch.equal(tree.image, images[b])


def test_some_capsules_are_active_some_are_not_and_some_are_chosen_only():
    """So that the test above tells the kinds apart."""
    trees = parse_trees(small_network(hidden=(12,)), torch.rand(8, 1, 28, 28), tau=0.3)
    kinds = {(node.active, node.chosen) for tree in trees for node in tree.nodes}
    assert {(True, True), (True, False), (False, True)} <= kinds
    assert any(len(tree.nodes) < sum(len(layer.activations) for layer in tree.layers) for tree in trees)


def test_T_is_the_paper_s_of_one_image():
    model = small_network()
    images = images_for(model)
    with torch.no_grad():
        couplings = [c.double().numpy() for c in model.parse(images).couplings]
    for b, tree in enumerate(parse_trees(model, images)):
        assert pytest.approx([scores.t_score(c[b : b + 1]) for c in couplings], abs=1e-6) == tree.T


@pytest.mark.parametrize("make", [small_network, matrix_network])
def test_one_image_alone_has_the_tree_it_has_in_a_batch(make):
    model = make().double()
    images = images_for(model).double()
    for alone, together in zip((parse_tree(model, i) for i in images), parse_trees(model, images), strict=True):
        assert alone.to_json() == together.to_json()


def test_capsules_stand_at_their_places():
    tree = parse_tree(small_network(image_shape=(1, 30, 24)), torch.rand(1, 30, 24))
    primary, hidden, _ = tree.layers
    assert (primary.name, primary.grid, primary.types) == ("primary", (4, 3), 2)  # (30-7)//2+1 = 12, (12-5)//2+1 = 4
    assert (hidden.grid, hidden.types) == ((1, 1), 6)
    assert len(primary.activations) == 24
    assert tree.tell(0, 9) == "primary row 1, column 1, type 1"
    assert tree.tell(1, 3) == "hidden 1 capsule 3"
    assert tree.tell(2, 3) == "3"
    tree = parse_tree(matrix_network(), torch.rand(1, 14, 14), class_names=["a", "b", "c"])
    assert [layer.grid for layer in tree.layers] == [(7, 7), (3, 3), (1, 1), (1, 1)]
    assert tree.tell(3, 2) == "c"


@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_each_iteration_s_couplings_are_those_of_routing_by_hand(rule):
    model = small_network(routing=rule).double()
    image = torch.rand(1, 28, 28, dtype=torch.float64)
    with torch.no_grad():
        parse = model.parse(image[None])
    route = routing.sda if rule == "sda" else routing.rba
    trees = routing_trees(model, image, tau=0.0)
    assert [tree.iteration for tree in trees] == [1, 2, 3]
    for k, tree in enumerate(trees, 1):
        for l, layer in enumerate(model.routed):
            weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
            _, couplings = route(parse.poses[l].numpy(), weight, bias, k)
            largest = np.sort(couplings[0], axis=1)[:, ::-1]
            nodes = tree.nodes_of(l)
            assert len(nodes) == len(largest)
            for i, node in nodes.items():
                assert (node.coupling, node.second) == pytest.approx(tuple(largest[i, :2]), abs=1e-9)
                assert node.parent == (None if k == 1 else couplings[0, i].argmax())
    assert [layer.iterations for layer in model.routed] == [3, 3]


@pytest.mark.parametrize("make", [small_network, matrix_network])
def test_the_last_iteration_s_tree_is_the_parse_tree(make):
    model = make()
    image = images_for(model)[0]
    first, *_, last = routing_trees(model, image)
    assert {**last.to_json(), "iteration": None} == parse_tree(model, image).to_json()
    # Uniform couplings: to all parents, or to those in the window of a matrix capsule.
    assert all(node.parent is None for node in first.nodes)
    assert pytest.approx([0] * len(first.T), abs=1e-6) == first.T
    assert min(first.T) >= 0


def test_a_matrix_capsule_outside_every_window_has_no_parent():
    model = gammacaps.create("matrix", image_shape=(1, 16, 16), classes=3, filters=8, types=(3, 3))
    tree = parse_tree(model, torch.rand(1, 16, 16), tau=0.0)
    rows, columns = tree.layers[0].grid
    assert (rows, columns) == (8, 8)  # windows of 3 with stride 2 reach rows and columns 0 to 6
    for node in tree.nodes_of(0).values():
        row, column = divmod(node.index // tree.layers[0].types, columns)
        assert (node.parent is None) == (row == 7 or column == 7)


def test_json_holds_the_tree_as_columns():
    model = small_network()
    tree = parse_tree(model, images_for(model)[0], tau=0.3, class_names=[f"c{n}" for n in range(10)])
    read = json.loads(json.dumps(tree.to_json(), allow_nan=False))
    assert read["format"] == 1
    assert read["class_names"][3] == "c3"
    assert (read["tau"], read["predicted"], read["iteration"]) == (0.3, tree.predicted, None)
    assert read["scores"] == pytest.approx(tree.scores, abs=1e-4)
    assert read["T"] == pytest.approx(tree.T, abs=1e-4)
    for l, layer in enumerate(read["layers"]):
        nodes, columns = list(tree.nodes_of(l).values()), layer["nodes"]
        assert layer["activations"] == pytest.approx(tree.layers[l].activations, abs=1e-4)
        assert layer["grid"] == list(tree.layers[l].grid)
        for name in ("index", "active", "chosen", "parent"):
            assert columns[name] == [getattr(node, name) for node in nodes]
        for name in ("coupling", "second"):
            values = [getattr(node, name) for node in nodes]
            assert columns[name] == [None if value is None else round(value, 4) for value in values]
        if l == 1:
            kept = [row for row in columns["couplings"] if row is not None]
            assert kept
            assert all(len(row) == 10 and sum(row) == pytest.approx(1, abs=1e-3) for row in kept)
        else:
            assert columns["couplings"] is None
    assert [layer["name"] for layer in read["layers"]] == ["primary", "hidden 1", "class"]


def tree_of(parents, lengths, predicted):
    """Three primary capsules, two classes; a tree written down by hand."""
    layers = (TreeLayer("primary", tuple(lengths), (1, 1), 3), TreeLayer("class", (0.8, 0.2), (1, 1), 2))
    nodes = [Node(0, i, lengths[i], True, False, p, 0.7, 0.3, None) for i, p in parents.items()]
    nodes += [Node(1, p, layers[1].activations[p], True, True, None, None, None, None) for p in (0, 1)]
    return ParseTree(torch.zeros(1, 4, 4), layers, tuple(nodes), (0.5,), (0.8, 0.2), predicted, 0.1, ("a", "b"))


def test_a_difference_by_hand():
    clean = tree_of({0: 0, 1: 1}, (0.5, 0.6, 0.0), 0)
    attacked = tree_of({1: 0, 2: 0}, (0.0, 0.6, 0.4), 1)
    found = difference(clean, attacked)
    assert found.predicted == (0, 1)
    primary, classes = found.layers
    assert (primary.same, primary.moved) == ((), ((1, 1, 0),))
    assert (primary.appeared, primary.vanished) == ((2,), (0,))
    assert (classes.same, classes.moved, classes.appeared, classes.vanished) == ((0, 1), (), (), ())
    assert json.loads(json.dumps(found.to_json()))["layers"][0] == {
        "name": "primary",
        "same": [],
        "moved": [[1, 1, 0]],
        "appeared": [2],
        "vanished": [0],
        "counts": {"same": 0, "moved": 1, "appeared": 1, "vanished": 1},
    }


def test_a_difference_counts_every_active_capsule_once():
    model = small_network(hidden=(12,))
    clean, attacked = parse_trees(model, images_for(model, 2), tau=0.3)
    same = difference(clean, clean)
    assert all(not (layer.moved or layer.appeared or layer.vanished) for layer in same.layers)
    found = difference(clean, attacked)
    for l, layer in enumerate(found.layers):
        both = len(layer.same) + len(layer.moved)
        counts = [sum(node.active for node in tree.nodes_of(l).values()) for tree in (clean, attacked)]
        assert [both + len(layer.vanished), both + len(layer.appeared)] == counts
    assert sum(len(layer.moved) for layer in found.layers) > 0


def test_a_tree_shows_itself_in_a_notebook():
    model = small_network()
    assert parse_tree(model, images_for(model)[0])._repr_svg_().startswith("<svg ")


def two_kinds():
    trees = [parse_tree(small_network(hidden=hidden), torch.rand(1, 28, 28)) for hidden in ((6,), (5,))]
    difference(*trees)


def two_taus():
    model, image = small_network(), torch.rand(1, 28, 28)
    difference(parse_tree(model, image), parse_tree(model, image, tau=0.2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: parse_tree(gammacaps.create("cnn"), torch.rand(1, 28, 28)), "A CNN has no capsules.*use a capsule"),
        (lambda: parse_tree(small_network(), torch.rand(2, 1, 28, 28)), r"one image \(C, H, W\).*use parse_trees"),
        (lambda: routing_trees(small_network(), torch.rand(28, 28)), r"not of \(28, 28\)"),
        (lambda: parse_trees(small_network(), torch.rand(1, 28, 28)), r"four dimensions \(N, C, H, W\)"),
        (lambda: parse_tree(small_network(), torch.rand(3, 28, 28)), r"takes images of shape \(B, 1, 28, 28\)"),
        (lambda: parse_tree(small_network(), 2 * torch.ones(1, 28, 28)), r"must be finite and within \[0, 1\]"),
        (
            lambda: parse_tree(small_network(), torch.rand(1, 28, 28), tau=1.0),
            "tau must be from 0 to below 1, as lengths are, not 1.0",
        ),
        (lambda: parse_tree(small_network(), torch.rand(1, 28, 28), tau=float("nan")), "tau must be from 0"),
        (lambda: parse_tree(small_network(), torch.rand(1, 28, 28), class_names=["a"]), "10 classes, but 1 names"),
        (lambda: parse_tree(small_network(scale_over="batch"), torch.rand(1, 28, 28)), "scale_over='batch'.*neighbour"),
        (two_kinds, "networks of different shapes: compare two trees of one network"),
        (two_taus, "active above 0.1 and above 0.2: give both one tau"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()
