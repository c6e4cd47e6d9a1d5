"""Cards of capsules: names, pictures, and what is to be said of them."""

import re
from dataclasses import replace

import pytest
from stored import stored

from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.kinds import GAMMA
from gammacaps.errors import InputError
from gammacaps.explain.without_each import accuracies_without_each, sufferers
from gammacaps.reporting.cards import caveat
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.content import Picture, Value
from gammacaps.reporting.hidden_card import HiddenCard, bars, draw_hidden
from gammacaps.reporting.page import compose, render
from gammacaps.reporting.sections.hidden import (
    Gallery,
    classes_of,
    draw_gallery,
    gallery,
    hidden_card,
    rank,
    speaks_for,
    suffers,
)
from gammacaps.reporting.study import open_study, watch


def with_pictures(study, **changes):
    """The same study, changed, with the generated inputs that it has."""
    other = replace(study, **changes)
    other.__dict__["_generated"] = study._generated
    return other


def test_a_gamma_capsule_is_named_by_the_classes_that_the_audit_found(study):
    names = study.test.class_names
    rows = [
        {"capsule": 0, "kind": "gamma-capsule", "classes": [5, 7, 9]},
        {"capsule": 1, "kind": "non-robust", "classes": [1]},
    ]
    audit = {"class_names": names, "layers": [{"layer": "hidden 1", "capsules": rows}]}
    audited_study = with_pictures(study, audit=audit)
    assert speaks_for(audited_study, "hidden 1", 0) == "shoes"
    assert speaks_for(audited_study, "hidden 1", 1) == speaks_for(audited_study, "class", 0) == ""
    assert classes_of(audited_study, "hidden 1", 0) == ("Sandal", "Sneaker", "Ankle boot")
    assert classes_of(audited_study, "hidden 1", 1) == ()
    told = suffers(audited_study, "hidden 1")
    assert set(told) == {0}
    before, (without_it,) = accuracies_without_each(study.model, "hidden 1", [0], *study.chosen)
    lost = sufferers(before, without_it)
    assert told[0] == tuple(f"{names[k.label]} −{100 * k.lost:.0f} points" for k in lost) or (
        told[0] == ("no class suffers",) and not lost
    )
    about = replace(study.about, class_sets={"hidden 1": ((1, 3),)})
    trained = with_pictures(study, audit=None, about=about)
    assert speaks_for(trained, "hidden 1", 0) == "long clothes"
    assert classes_of(trained, "hidden 1", 0) == ("Trouser", "Dress")
    assert classes_of(trained, "hidden 1", 5) == ()
    assert suffers(trained, "hidden 1") == {}


def test_a_card_tells_a_capsule_s_name_its_gamma_and_who_misses_it():
    about = {"name": "<Boots>", "classes": ("A", '"B"'), "gamma": Value("gamma hidden 1 3", "0.25")}
    rates = (("A", 1.0), ('"B"', 0.5), ("C", 0.0))
    drawn = draw_hidden(
        HiddenCard(3, Picture(b"", ""), 0.9, rates, GAMMA, **about, interval="0.10 to 0.40", suffers=("<Boot> −70",))
    )
    assert '<h4>&lt;Boots&gt;<span class="number">3</span></h4>' in drawn
    assert '<span class="value" data-value="gamma hidden 1 3">0.25</span>' in drawn
    assert "Without it: &lt;Boot&gt; −70." in drawn
    assert "On in the images of each class: A 100%; &quot;B&quot; 50%; C 0%" in drawn
    assert drawn.count('class="on own"') == 2
    assert '<span class="tone pass">gamma-capsule</span>' in drawn
    unsure = draw_hidden(HiddenCard(3, Picture(b"", ""), 0.9, kind=GAMMA, certain=False))
    assert '<span class="tone warn">gamma-capsule, not certain</span>' in unsure
    assert "not audited" in draw_hidden(HiddenCard(3, Picture(b"", ""), 0.9))
    assert "trained for these" in draw_hidden(HiddenCard(3, Picture(b"", ""), 0.9, name="shoes"))


def test_capsules_of_one_name_show_their_number_once_and_what_is_not_certain(study):
    given = {"kind": GAMMA, "classes": [5, 7, 9], "gamma": [0.2]}
    first, second, *others = study.audit["layers"][0]["capsules"]
    sure, unsure = ({**row, **given, "gamma_interval": [low, 0.4]} for row, low in ((first, 0.1), (second, -0.1)))
    layers = [{**study.audit["layers"][0], "capsules": [sure, unsure, *others]}]
    audited_study = with_pictures(study, audit={**study.audit, "layers": layers})
    number = second["capsule"]
    assert speaks_for(audited_study, "hidden 1", number) == f"shoes ({number})"
    made = [hidden_card(audited_study, "hidden 1", one, (), ()) for one in study.capsules["hidden 1"][:2]]
    assert [(card.number, card.name, card.certain) for card in made] == [(0, "shoes", True), (1, "shoes", False)]
    assert f'<h4>shoes<span class="number">{number}</span></h4>' in draw_hidden(made[1])


def test_a_class_s_name_under_a_bar_is_cut_with_a_sign():
    def labels(*names):
        return re.findall(
            r"<text[^>]*>([^<]*)<", bars(HiddenCard(0, Picture(b"", ""), 0.9, tuple((n, 0.5) for n in names)))
        )

    assert labels("house", "star fish", "tree") == ["house", "star f…", "tree"]
    assert labels(*("star fish" for _ in range(10))) == ["st"] * 10  # of many, two letters stand for each


def test_gamma_capsules_stand_first_and_the_others_are_folded():
    def card(number, kind, gamma=None):
        value = None if gamma is None else Value(str(number), f"{gamma:.2f}")
        return HiddenCard(number, Picture(b"", ""), 0.9, kind=kind, gamma=value)

    cards = [card(0, "dead"), card(1, "non-robust", -0.5), *(card(2 + k, GAMMA, 0.1 * k) for k in range(7))]
    cards = tuple(sorted([*cards, card(9, "not useful")], key=rank))
    assert [one.number for one in cards] == [8, 7, 6, 5, 4, 3, 2, 1, 9, 0]
    first, folded = draw_gallery(Gallery("hidden 1", cards)).split('<details class="rest">')
    assert first.count('class="card"') == 7
    assert "<summary>3 more: 1 non-robust, 1 not useful, 1 dead</summary>" in folded


@pytest.mark.slow
def test_a_capsule_is_on_as_often_as_the_audit_says(study):
    shares, tau, images = study.active_by_class("hidden 1")
    assert (tau, images) == (study.audit["tau"], study.audit["data"]["images"])
    rows = study.audit["layers"][0]["capsules"]
    assert shares.mean(1).tolist() == pytest.approx([row["active"] for row in rows], abs=0.051)  # 20 images


def test_active_means_the_same_in_trees_and_on_cards(study, contents):
    assert study.tau == study.audit["tau"] == contents["trees"].tau == contents["hidden"].tau
    assert replace(study, audit=None).tau == AuditConfig().tau
    assert replace(study, config=replace(study.config, tau=0.3)).tau == 0.3


def test_the_time_left_is_told_while_inputs_are_generated(monkeypatch, capsys):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    tell = watch("hidden 1")
    for done in (1, 2, 4):
        tell(done, 4)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r"Inputs for hidden 1 capsules: 1/4, \d:\d\d left", lines[0])
    assert lines[2] == "Inputs for hidden 1 capsules: 4/4"


def test_a_picture_of_which_the_search_fell_short_is_said_to_say_nothing(study):
    shown = study.capsules["hidden 1"][0]
    best = shown.generated.activations.max().item()
    every = replace(study, config=replace(study.config, tau=0.0))
    notes = [caveat(every, replace(shown, reached=reached)) for reached in (1.9 * best, 2.1 * best)]
    assert "fell short" not in notes[0]
    assert notes[1] == f"the search fell short: a test image makes it {2.1 * best:.2f} long"


@pytest.mark.slow
def test_matrix_capsules_are_shown_by_the_most_active(tmp_path):
    run = stored(tmp_path / "matrix", "matrix", filters=4, primary_types=2, types=(3, 3))
    config = ReportConfig(data="fashion-mini", images=10, starts=1, steps=1, capsules=4, trees=0, device="cpu")
    study = open_study(run, config)
    layers = [gallery(study, name, study.active_by_class(name)[0].tolist()) for name in ("hidden 1", "hidden 2")]
    assert [len(shown.cards) for shown in layers] == [4, 4]
    assert layers[0].note == "the 4 of 108 capsules that test images activate most"


@pytest.mark.slow
def test_another_network_s_class_capsules_stand_beside(run, contents, quick, tmp_path):
    tiny = {"filters": 4, "primary_types": 2, "hidden": (3,), "decoder": ()}
    config = replace(quick, beside=str(stored(tmp_path / "grown", "small", **tiny)), trees=0)
    page = compose(open_study(run, config))
    both = page.contents["classes"]
    assert both.other == "grown"
    for mine, with_other in zip(contents["classes"].cards, both.cards, strict=True):
        assert with_other.generated == mine.generated
        assert with_other.other is not None
        assert with_other.other.content != mine.generated.content
    assert "<small>grown</small>" in render(page)
    cnn, few = stored(tmp_path / "cnn", "cnn", filters=(4, 4)), stored(tmp_path / "few", "small", classes=3)
    for other, words in ((cnn, "has no capsules that can be shown"), (few, "in 3 classes, but the network those of")):
        with pytest.raises(InputError, match=words):
            open_study(run, replace(quick, beside=str(other), trees=0))
