"""What objects print as: one line, or a short table."""

import pytest

import gammacaps
from gammacaps import explain
from gammacaps.data import load_set


@pytest.mark.slow
def test_what_a_network_says_prints_in_one_line():
    model, (images, labels) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    tree = explain.parse_tree(model, images[0])
    shown = [
        model.parse(images[:3]),
        tree,
        explain.difference(tree, explain.parse_tree(model, images[1])),
        explain.activate(model, "class", 2, starts=2, steps=2),
        explain.activation_map(model, images[:20], labels[:20]),
        explain.none_of_the_above(model, images[:20]),
        load_set("fashion-mini", "test"),
        gammacaps.attacks.attack_named("pgd"),
    ]
    for one in shown:
        assert repr(one).startswith(f"{type(one).__name__}(")
        assert "\n" not in repr(one)
        assert len(repr(one)) < 700, repr(one)
    assert "scores=<3 x 10>" in repr(shown[0])


@pytest.mark.slow
def test_figures_print_as_their_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = gammacaps.evaluate("fashion-mini", attacks="fgsm", limit=20, checks=False, quiet=True)
    assert "WORST CASE eps 0.1" in repr(results)
    assert "<table>" in results._repr_html_()
    audited = gammacaps.audit("fashion-mini", limit=10, attack_steps=2, quiet=True)
    assert "hidden 1" in repr(audited)
    assert max(len(repr(results)), len(repr(audited))) < 6000
