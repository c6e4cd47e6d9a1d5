"""Curves over eps, and the pictures of trees and maps."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from gammacaps.errors import InputError
from gammacaps.reporting.chart import BELOW, LEFT, RIGHT, TOP, chart
from gammacaps.reporting.content import Curve, Series
from gammacaps.reporting.sections.maps import make_filters, make_none_of_the_above, show_filters
from gammacaps.reporting.sections.network import facts, lead
from gammacaps.reporting.sections.strength import curve
from gammacaps.reporting.sections.trees import attacked_pairs, trees_of
from gammacaps.reporting.study import open_study
from gammacaps.runs.run import EPS


def test_the_curve_does_not_draw_the_worst_case_twice(study):
    attack = {"steps": 40, "restarts": 1, "interval": [0.1, 0.9]}
    pgd = [{"attack": "pgd", "eps": eps, "accuracy": 0.5 - eps, **attack} for eps in (0.2, 0.1)]
    worst = [{"eps": row["eps"], "accuracy": row["accuracy"], "interval": [0.1, 0.9]} for row in pgd]
    clean = {"accuracy": 0.9, "interval": [0.8, 1.0]}
    drawn = curve(study, {"clean": clean, "attacks": pgd, "worst": worst})
    assert [(series.name, series.points) for series in drawn.series] == [
        ("Worst case of one attack", ((0.0, 0.9), (0.1, 0.4), (0.2, 0.3)))
    ]
    worst[0]["accuracy"] = 0.2
    assert len(curve(study, {"clean": clean, "attacks": pgd, "worst": worst}).series) == 2
    sweep = [{"attack": "sweep", "eps": 0.3, "accuracy": 0.1, **attack}]
    drawn = curve(study, {"clean": clean, "attacks": pgd, "sweep": sweep})
    assert [series.points for series in drawn.series] == [((0.0, 0.9), (0.3, 0.1))]
    assert curve(study, {"clean": clean, "attacks": []}) is None


def test_the_curve_draws_users_attacks_and_those_of_ours_that_it_always_drew(study):
    names = ("noise", "fgsm", "pgd", "pgd-margin", "pgd-ce", "pgd-dlr", "vote", "transfer", "square", "apgd-ce")
    names = (*names, "apgd-t", "fab-t", "auto-square", "grey", "darker")
    rows = [
        {"attack": name, "eps": eps, "accuracy": (place + 1) / 20, "steps": 40, "restarts": 1, "interval": [0.0, 0.9]}
        for eps in (0.1, 0.2)
        for place, name in enumerate(names)
    ]
    drawn = curve(study, {"clean": {"accuracy": 0.9, "interval": [0.8, 1.0]}, "attacks": rows})
    assert sorted(series.name for series in drawn.series) == ["Darker", "FGSM", "PGD-40", "Random noise"]
    assert all(len(series.points) == 3 for series in drawn.series)


def shown_label(points, at=0.3, width=0.03, height=235):
    """Where the name of an upright line stands (left, right, above, below), and the line's heights over it."""
    series = Series("worst case", tuple(points), tuple((max(0, y - width), min(1, y + width)) for _, y in points))
    whole = Curve("", "eps", "", (series,), "", levels=(("guessing", 0.1),), marks=(("trained at this eps", at),))
    drawn = chart(replace(whole, height=height))
    found = re.search(r'x="([0-9.]+)" y="([0-9.]+)" text-anchor="(\w+)">trained at this eps<', drawn)
    x, below, anchor = float(found[1]), float(found[2]), found[3]
    wide = 6 * len("trained at this eps")
    left, right = (x, x + wide) if anchor == "start" else (x - wide, x)
    longest = max(x for x, _ in points)
    across = np.linspace(left, right, 50)
    shares = np.interp((across - LEFT) / (RIGHT - LEFT) * longest, *zip(*points, strict=True))
    bottom = height - BELOW
    return (left, right, below - 10, below + 2), bottom - (bottom - TOP) * shares


@pytest.mark.parametrize(
    "points",
    [
        ((0.0, 0.99), (0.1, 0.98), (0.2, 0.97), (0.3, 0.946)),  # high, as of a network that holds
        ((0.0, 0.99), (0.1, 0.98), (0.3, 0.946), (0.5, 0.5)),
        ((0.0, 0.88), (0.1, 0.5), (0.3, 0.2), (0.5, 0.1)),
        ((0.0, 0.8), (0.3, 0.0)),  # low
        ((0.0, 0.3), (0.3, 0.05), (0.5, 0.0)),
    ],
)
def test_the_name_of_the_training_s_radius_stands_where_no_line_is(points):
    (left, right, above, below), line = shown_label(points)
    assert left >= LEFT
    assert right <= RIGHT
    assert above >= TOP
    assert below < 235 - BELOW
    assert ((line < above) | (line > below)).all()


def test_where_no_place_is_free_the_name_stands_at_the_top():
    (_, _, above, _), _ = shown_label(((0.0, 0.5), (0.3, 0.5)), width=0.5)
    assert above == pytest.approx(TOP + 2)


def test_the_shorter_a_capsule_the_fainter_its_picture_in_a_tree(study, contents):
    clean, first = attacked_pairs(study)[0].clean, contents["trees"].trees[0]
    drawn = re.findall(r'<image [^>]*opacity="([^"]+)"[^>]*><title>([^:]+): ([0-9.]+)', first.clean.content)
    assert len(drawn) == sum(len(clean.nodes_of(l)) for l in (1, 2))
    for opacity, _, length in drawn:
        assert float(opacity) == pytest.approx(0.35 + 0.65 * float(length), abs=0.01)


def test_trees_that_would_make_the_page_too_large_are_left_out(study, contents, monkeypatch):
    first = contents["trees"].trees[0]
    monkeypatch.setattr(
        "gammacaps.reporting.sections.trees.ROOM", len(first.clean.content) + len(first.attacked.content)
    )
    assert trees_of(study, attacked_pairs(study)) == (first,)


def test_filters_are_captioned_by_their_colours(study):
    words = "The paper reports that training under attack concentrates them."
    filters = make_filters(study)
    grey = show_filters(filters).caption
    assert grey.startswith("Vermillion is positive, blue negative. The largest tenth")
    assert grey.endswith(words)
    coloured = replace(filters, weights=torch.zeros(4, 3, 5, 5))
    assert show_filters(coloured).caption.startswith("Each filter is shown as a colour image: grey is 0. The largest")


@pytest.mark.slow
def test_other_data_are_one_more_kind_of_nothing(run, study, quick, tmp_path):
    np.savez(tmp_path / "other.npz", images=np.zeros((40, 28, 28), np.uint8), labels=np.arange(40) % 2)
    with_others = open_study(run, replace(quick, others=str(tmp_path / "other.npz")))
    assert len(make_none_of_the_above(with_others).kinds) == len(make_none_of_the_above(study).kinds) + 1
    np.savez(tmp_path / "colour.npz", images=np.zeros((40, 28, 28, 3), np.uint8), labels=np.arange(40) % 2)
    with pytest.raises(InputError, match="name other images with --others"):
        open_study(run, replace(quick, others=str(tmp_path / "colour.npz")))


@pytest.mark.slow
def test_a_network_trained_in_another_norm_has_no_mark_among_radii_of_pixels(study):
    train = replace(study.about.train, norm="l2", eps=1.5)
    other = replace(study, about=replace(study.about, train=train))
    assert curve(study, study.results).marks == (("trained at this eps", 0.1),)
    assert curve(other, other.results).marks == ()
    assert "changed, by up to 0.1 a pixel, to where" in lead(study)
    assert "changed, by up to 1.5 in all (L2), to where" in lead(other)
    assert [fact.value for fact in facts(other) if fact.name == "Trained"] == ["under attack, L2, eps 1.5"]
    assert other.pictured.eps == EPS  # its images are attacked in L-inf
