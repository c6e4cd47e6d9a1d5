"""From a run's folder to its page and its files."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import gammacaps
from gammacaps.attacks import suites
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.explain.without_each import accuracies_without_each, sufferers
from gammacaps.models import to_config
from gammacaps.models.folder import write_config, write_weights
from gammacaps.reporting.accuracies import earlier
from gammacaps.reporting.cards import CapsuleCard, caveat
from gammacaps.reporting.command_line import options
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.content import Picture
from gammacaps.reporting.explanation import NAMES, files_of
from gammacaps.reporting.headline import hardest, headline
from gammacaps.reporting.page import compose, render
from gammacaps.reporting.run import explain_run, report_run
from gammacaps.reporting.sections.audit import shown_audit
from gammacaps.reporting.sections.checks import number
from gammacaps.reporting.sections.hidden import classes_of, draw_card, gallery, kind_of, speaks_for, suffers
from gammacaps.reporting.sections.maps import make_filters, make_none_of_the_above, show_filters
from gammacaps.reporting.sections.network import lead
from gammacaps.reporting.sections.rerun import commands
from gammacaps.reporting.sections.scores import scores
from gammacaps.reporting.sections.strength import curve
from gammacaps.reporting.sections.trees import attacked_pairs, trees_of
from gammacaps.reporting.study import of_data, open_study


@pytest.fixture(scope="module")
def study(run, quick):
    return open_study(run, quick)


@pytest.fixture(scope="module")
def page(study):
    return compose(study)


@pytest.fixture(scope="module")
def contents(page):
    """By the names of the sections."""
    return page.contents


def stored(folder, preset, **changes):
    """A network that was never trained, as a run."""
    model = gammacaps.create(preset, **changes)
    folder.mkdir()
    write_config(folder, {"model": to_config(model), "train": {}})
    write_weights(folder, model.state_dict())
    return folder


def test_figures_of_other_data_are_left_out(tmp_path, capsys):
    test = load_set("fashion-mini")
    figures = {"data": {"name": test.name, "source": str(test.source)}, "class_names": list(test.class_names)}
    path = tmp_path / "results.json"
    assert of_data(figures, test, path) is figures
    assert of_data(None, test, path) is None
    elsewhere = {**figures, "data": {"name": "the same by another name", "source": str(test.source)}}
    assert of_data(elsewhere, test, path) is elsewhere
    assert capsys.readouterr().err == ""
    assert of_data({**figures, "data": {"name": "pets", "source": "pets.npz"}}, test, path) is None
    assert "its figures are of pets, and the report is about fashion-mini" in capsys.readouterr().err
    assert of_data({**figures, "class_names": ["cat", "dog"]}, test, path) is None


@pytest.mark.slow
def test_the_page_says_what_the_run_s_own_files_say(run, study, contents):
    results = json.loads((run / "results.json").read_text())
    rows = {row.name: row.accuracy for row in contents["scores"].rows}
    assert rows["Clean"] == results["clean"]["accuracy"]
    assert rows["PGD-2, eps 0.1"] == next(
        r["accuracy"] for r in results["attacks"] if r["eps"] == 0.1 and r["steps"] == 2
    )
    assert len(contents["strength"].series[0].points) == 3  # clean, and two radii
    assert contents["strength"].marks == (("trained at this eps", 0.1),)
    assert "for 3 steps of 32 images" in contents["network"].lead
    assert f"{sum(p.numel() for p in study.model.parameters()):,}" == contents["network"].facts[0].value
    # A picture and a training image for each class, one for each hidden capsule, trees of two classes.
    assert [capsule.name for capsule in contents["classes"].cards] == list(load_set("fashion-mini").class_names)
    assert [capsule.name for capsule in contents["hidden"].layers[0].cards] == [f"Capsule {k}" for k in range(6)]
    assert [tree.title for tree in contents["trees"].trees] == ["T-shirt", "Sandal"]
    first = contents["trees"].trees[0]
    assert first.attacked.content != first.clean.content
    with torch.no_grad():
        shown = study.capsules["hidden 1"][4].generated
        length = study.model.parse(shown.image.unsqueeze(0)).activations[1][0, 4].item()
    assert contents["hidden"].layers[0].cards[4].length == pytest.approx(length, abs=1e-6)


@pytest.mark.slow
def test_a_page_is_written_and_the_same_each_time(run, quick, page):
    path = report_run(run, quick)
    assert path == run / "report.html"
    written = path.read_text()
    for section in ("network", "scores", "strength", "classes", "hidden", "trees", "audit", "maps", "rerun"):
        assert f'<section id="{section}"' in written
    assert len(written) < 5_000_000
    assert render(page) == written


def test_the_commands_on_the_page_are_the_ones_that_made_it(run, contents):
    commands = {command.line for command in contents["rerun"].commands}
    assert f"gammacaps report {run} --starts 2 --steps 2 --trees 2 --images 20 --device cpu" in commands
    evaluated = next(line for line in commands if line.startswith("gammacaps evaluate"))
    assert "--attacks paper --eps 0.05 0.1" in evaluated
    assert "--limit 20" in evaluated
    assert "--no-checks" in evaluated
    audited = "--limit 20 --tau 0.1 --taus 0.1 0.2 --eps 0.05 0.1 --attack-steps 1 --device cpu"
    assert f"gammacaps audit {run} {audited}" in commands


def test_the_price_on_brightness_stands_beside_the_paper_s(contents):
    fact = next(fact for fact in contents["rerun"].versions if fact.name == "Price on brightness")
    assert (fact.value, fact.note) == ("0.0001 for classes, 1e-05 for hidden capsules", "the paper's: 0 and 1e-05")


def test_commands_name_the_plugins_that_they_need(study, monkeypatch):
    monkeypatch.setenv("GAMMACAPS_PLUGINS", "my_rules,my attacks")
    assert all(one.line.startswith("GAMMACAPS_PLUGINS='my_rules,my attacks' gammacaps ") for one in commands(study))


@pytest.mark.slow
def test_training_by_the_clock_is_said_not_to_come_out_the_same(study):
    def does(minutes):
        about = replace(study.about, train=replace(study.about.train, minutes=minutes))
        return commands(replace(study, about=about))[0].does

    assert does(None) == "Train it again, with the same options"
    assert does(12.0).endswith("the schedule follows the clock: this gives other weights and other figures")


def test_figures_of_an_earlier_state_are_said_to_be_so(run, study, contents):
    assert study.results["trained_steps"] == study.last["step"] == 3
    assert not any("earlier state" in note for note in (*contents["scores"].notes, *contents["audit"].notes))
    later = replace(study, last=study.last | {"step": 1200})
    words = "an earlier state: they were made after 3 steps of training, and the network now has 1,200."
    assert words in scores(later, study.results).notes[0]
    audited = study.audit | {"trained_steps": 3}
    assert words in shown_audit(audited, earlier(later, audited)).notes[0]
    assert earlier(later, {}) == earlier(replace(study, last=None), audited) == ()


def attacked(attack, eps, accuracy, steps=None):
    shown = {"attack": attack, "eps": eps, "accuracy": accuracy, "steps": steps, "restarts": 1}
    return shown | {"loss": None, "interval": [0.1, 0.9], "images": 20, "seconds": 1.0}


def test_the_headline_names_the_worst_case_of_a_strong_evaluation(study):
    attacks = [
        attacked("pgd", 0.1, 0.59, 40),
        attacked("apgd-ce", 0.1, 0.6),
        attacked("apgd-t", 0.1, 0.57),
        attacked("fab-t", 0.1, 0.56),
        attacked("auto-square", 0.1, 0.56),
        attacked("pgd", 0.3, 0.1, 40),
    ]
    worst = {"eps": 0.1, "accuracy": 0.56, "interval": [0.4, 0.7], "images": 20}
    asked = {"settings": {"attacks": ["pgd", "autoattack"]}}
    results = study.results | {"attacks": attacks, "worst": [worst], **asked}
    shown = headline(replace(study, results=results))[1]
    assert (shown.name, shown.value) == ("right under attack, eps 0.1", "56.0%")
    assert shown.note == "40.0 to 70.0, of 20 images; worst case of 2 attacks (pgd, autoattack)"
    # All of them were run only where every attack of the strong suite has its row.
    every = [attacked(name, 0.1, 0.56) for name in suites()["strong"]]
    strong = results | {"attacks": every, "settings": {"attacks": ["strong"]}}
    note = headline(replace(study, results=strong))[1].note
    assert note == "40.0 to 70.0, of 20 images; worst case of all attacks (strong)"
    # Without a worst case AutoAttack's parts are one, whose figure is the last one's.
    shown = headline(replace(study, results=results | {"worst": []}))[1]
    assert (shown.value, shown.note) == ("56.0%", "10.0 to 90.0, of 20 images; AutoAttack")
    # Where nothing was measured at the training's radius, the largest counts.
    elsewhere = replace(study, about=replace(study.about, train=replace(study.about.train, eps=0.2)))
    assert hardest(elsewhere, results)["eps"] == 0.3
    assert hardest(study, results | {"attacks": [], "worst": []}) is None


def test_options_are_written_as_a_shell_reads_them():
    values = {"data": "my data.npz", "eps": [0.1, 0.25], "robust": True, "checks": False, "same": 1, "unknown": 2}
    defaults = {"data": None, "eps": (), "robust": False, "checks": True, "same": 1}
    assert options(values, defaults) == " --data 'my data.npz' --eps 0.1 0.25 --robust --no-checks"


@pytest.mark.slow
def test_explaining_writes_every_picture_and_its_numbers(run, study, quick, monkeypatch):
    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)  # as it is, to save the time
    folder = explain_run(run, quick)
    names = {path.name for path in folder.iterdir()}
    assert {f"class-{k}.png" for k in range(10)} | {f"hidden-1-{k}.png" for k in range(6)} <= names
    capsules = json.loads((folder / "capsules.json").read_text())
    assert len(capsules["layers"]["class"]) == 10
    assert (capsules["class_penalty"], capsules["hidden_penalty"]) == (1e-4, 1e-5)
    assert set(capsules["layers"]["hidden 1"][0]) >= {"capsule", "activation", "scores", "features", "picture"}
    for name in ("strongest", "activation-map", "class-map", "coupling-map", "confusion", "filters", "reconstruction"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        json.loads((folder / f"{name}.json").read_text())
    assert (folder / "tree-2.svg").read_text().startswith("<svg")
    assert len(json.loads((folder / "routing.json").read_text())) == 3  # iterations
    tree = json.loads((folder / "tree-2.json").read_text())
    assert tree["label"] == 5
    assert tree["clean"]["tau"] == 0.1


@pytest.mark.parametrize(("name", "verb"), [("results.json", "evaluate"), ("audit.json", "audit")])
@pytest.mark.parametrize("content", ["[]", "null", '{"format": 99}', '{"format": 1}'])
def test_figures_of_another_kind_are_one_sentence(tmp_path, name, verb, content):
    folder = tmp_path / "run"
    stored(folder, "cnn", filters=(4, 4), width=8)
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=f"make it anew with gammacaps {verb}"):
        report_run(folder, ReportConfig(data="fashion-mini", images=10, device="cpu"))


@pytest.mark.slow
def test_other_data_are_one_more_kind_of_nothing(run, study, quick, tmp_path):
    np.savez(tmp_path / "other.npz", images=np.zeros((40, 28, 28), np.uint8), labels=np.arange(40) % 2)
    with_others = open_study(run, replace(quick, others=str(tmp_path / "other.npz")))
    assert len(make_none_of_the_above(with_others).kinds) == len(make_none_of_the_above(study).kinds) + 1
    np.savez(tmp_path / "colour.npz", images=np.zeros((40, 28, 28, 3), np.uint8), labels=np.arange(40) % 2)
    with pytest.raises(InputError, match="name other images with --others"):
        open_study(run, replace(quick, others=str(tmp_path / "colour.npz")))


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


def test_a_picture_of_which_the_search_fell_short_is_said_to_say_nothing(study):
    shown = study.capsules["hidden 1"][0]
    best = shown.generated.activations.max().item()
    every = replace(study, config=replace(study.config, tau=0.0))
    notes = [caveat(every, replace(shown, reached=reached)) for reached in (1.9 * best, 2.1 * best)]
    assert "fell short" not in notes[0]
    assert notes[1] == f"the search fell short: a test image makes it {2.1 * best:.2f} long"


@pytest.mark.slow
def test_explaining_again_leaves_nothing_of_before_but_other_files(study, quick, monkeypatch, tmp_path):
    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)
    every = files_of(study)
    assert all(NAMES.fullmatch(name) for name in every)
    fewer = {"tree-1.svg": b"new", "class-0.png": b"new"}
    monkeypatch.setattr("gammacaps.reporting.run.files_of", lambda _: fewer)
    folder = tmp_path / "explain"
    folder.mkdir()
    for name in (*every, "notes.txt", "hidden-2-07.png", "tree-10.json"):
        (folder / name).write_text("old")
    explain_run(tmp_path, quick)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "tree-1.svg": "new",
        "class-0.png": "new",
        "notes.txt": "old",
    }


def test_a_file_in_the_place_of_the_folder_is_named(study, quick, monkeypatch, tmp_path):
    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)
    monkeypatch.setattr("gammacaps.reporting.run.files_of", lambda _: pytest.fail("it worked before it looked"))
    (tmp_path / "explain").write_text("mine")
    with pytest.raises(InputError, match="explain is a file, where a folder is to be written: move it away"):
        explain_run(tmp_path, quick)


def test_an_explanation_that_is_not_done_leaves_no_folder(study, quick, monkeypatch, tmp_path):
    def stopped(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)
    monkeypatch.setattr("gammacaps.reporting.run.files_of", stopped)
    with pytest.raises(KeyboardInterrupt):
        explain_run(tmp_path, quick)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_plain_network_has_a_page_without_capsules(tmp_path):
    run = stored(tmp_path / "cnn", "cnn", filters=(4, 4))
    page = report_run(run, ReportConfig(data="fashion-mini", images=20, device="cpu")).read_text()
    assert re.findall(r'<section id="(\w+)"', page) == ["network", "scores", "maps", "rerun"]
    assert "How it was trained is not recorded." in page


@pytest.mark.slow
def test_a_network_whose_capsules_depend_on_neighbours_has_a_page_without_them(tmp_path):
    tiny = {"filters": 8, "primary_types": 2, "hidden": (6,), "decoder": (16,)}
    run = stored(tmp_path / "batch", "small", scale_over="batch", **tiny)
    page = report_run(run, ReportConfig(data="fashion-mini", images=20, device="cpu")).read_text()
    assert re.findall(r'<section id="(\w+)"', page) == ["network", "scores", "maps", "rerun"]
    assert "Its capsules are not shown here: with scale_over=&#x27;batch&#x27;, what they say of an image" in page
    other = open_study(run, ReportConfig(data="fashion-mini", images=20, device="cpu"))
    other.model.neighbours_option = None  # as of a network that has no such option
    assert "not shown here: what they say of an image depends on the images beside it." in lead(other)


def test_filters_are_captioned_by_their_colours(study):
    words = "The paper reports that training under attack concentrates them."
    filters = make_filters(study)
    grey = show_filters(filters).caption
    assert grey.startswith("Vermillion is positive, blue negative. The largest tenth")
    assert grey.endswith(words)
    coloured = replace(filters, weights=torch.zeros(4, 3, 5, 5))
    assert show_filters(coloured).caption.startswith("Each filter is shown as a colour image: grey is 0. The largest")


@pytest.mark.slow
def test_matrix_capsules_are_shown_by_the_most_active(tmp_path):
    run = stored(tmp_path / "matrix", "matrix", filters=4, primary_types=2, types=(3, 3))
    config = ReportConfig(data="fashion-mini", images=10, starts=1, steps=1, capsules=4, trees=0, device="cpu")
    study = open_study(run, config)
    layers = [gallery(study, name) for name in ("hidden 1", "hidden 2")]
    assert [len(shown.cards) for shown in layers] == [4, 4]
    assert layers[0].note == "the 4 of 108 capsules that test images activate most"


def test_data_that_does_not_fit_is_named(run, tmp_path):
    small = tmp_path / "small.npz"
    np.savez(small, images=np.zeros((20, 8, 8), np.uint8), labels=np.arange(20) % 2)
    with pytest.raises(InputError, match=r"takes images of shape \(1, 28, 28\) in 10 classes, but .* give data like"):
        open_study(run, ReportConfig(data=str(small)))


def test_a_run_that_does_not_name_its_data_asks_for_it(quick, tmp_path):
    run = stored(tmp_path / "bare", "small", filters=8, primary_types=2, hidden=(6,), decoder=())
    with pytest.raises(InputError, match="does not say what it was trained on: name a data set with --data"):
        open_study(run, quick)


def audited(gamma: int, others: int, single: float) -> dict:
    """An audit.json of one layer with so many gamma-capsules, so many that are not robust, and a dead one."""
    kinds = ["gamma-capsule"] * gamma + ["non-robust"] * others + ["dead"]
    counts = {"gamma-capsule": gamma, "non-robust": others, "not useful": 0, "dead": 1}
    before = counts | {"gamma-capsule": gamma + others, "non-robust": 0}
    capsules = [
        {
            "capsule": k,
            "kind": kind,
            "active": 0.0 if kind == "dead" else 0.25,
            "classes": [0, 1],
            "rho": 1.5,
            "gamma": {"gamma-capsule": [1.0, 0.25], "non-robust": [1.0, -0.5], "dead": None}[kind],
            "gamma_any": {"gamma-capsule": 0.25, "non-robust": -0.5, "dead": None}[kind],
        }
        for k, kind in enumerate(kinds)
    ]
    layer = {"layer": "hidden 1", "of": len(kinds), "counts": counts, "capsules": capsules}
    layer["over_eps"] = [{"eps": 0.0, **before}, {"eps": 0.05, **before}, {"eps": 0.1, **counts}]
    layer["over_tau"] = [{"tau": 0.1, **counts}]
    tree = {"from": "hidden 1", "to": "hidden 1", "T": 0.5, "active": 9, "single_parent": single, "margin": 0.4}
    about = {"verdict": "So many are.", "class_names": ["cat", "dog"], "tau": 0.1, "eps": [0.05, 0.1]}
    about |= {"data": {"name": "pets", "images": 9}, "settings": {}}
    return {**about, "layers": [layer], "tree": [tree, tree | {"single_parent": None, "margin": None}]}


@pytest.mark.parametrize(
    ("gamma", "others", "single", "expected"),
    [(4, 0, 1.0, "pass"), (4, 0, 0.5, "warn"), (2, 2, 1.0, "warn"), (1, 2, 1.0, "fail"), (0, 0, 1.0, "fail")],
)
def test_an_audit_is_answered_by_the_definition(gamma, others, single, expected):
    assert shown_audit(audited(gamma, others, single)).verdict == expected


def test_a_network_of_which_a_part_was_audited_is_one_in_part_at_most():
    values = audited(4, 0, 1.0)
    values["tree"].append(values["tree"][0] | {"from": "primary", "to": "class"})
    shown = shown_audit(values)
    assert shown.verdict == "warn"
    assert shown.notes[0] == "The definition asks it of every capsule. Not audited: layer primary, layer class."
    some = audited(4, 0, 1.0)
    some["layers"][0]["of"] = 1152
    assert shown_audit(some).verdict == "warn"
    assert shown_audit(some).notes[0].endswith("Not audited: 1,147 of the 1,152 capsules of layer hidden 1.")


def test_chance_and_the_interval_are_shown_and_what_is_uncertain_is_named():
    values = audited(2, 1, 1.0)
    intervals = [[0.1, 0.4], [-0.1, 0.6], [-0.9, 0.1], None]
    for row, interval in zip(values["layers"][0]["capsules"], intervals, strict=True):
        row |= {"chance": 0.75, "gamma_interval": interval}
    table = shown_audit(values).tables[0]
    assert table.head[4:] == (
        "rho",
        "by chance",
        "gamma, eps 0.05",
        "gamma, eps 0.1",
        "95% interval, eps 0.1",
        "best gamma",
    )
    assert [row[1] for row in table.rows] == ["gamma-capsule", "gamma-capsule, uncertain", "non-robust", "dead"]
    assert table.rows[1][4:] == ("1.50", "0.75", "1.00", "0.25", "-0.10 to 0.60", "0.25")
    assert table.rows[3][4:] == ("1.50", "0.75", "–", "–", "–", "–")


def test_an_audit_s_figures_stand_in_its_tables_and_curves():
    shown = shown_audit(audited(3, 1, 0.8))
    assert shown.sentence == "So many are."
    capsules, parents = shown.tables
    assert capsules.head[-3:] == ("gamma, eps 0.05", "gamma, eps 0.1", "best gamma")
    assert capsules.rows[3] == ("3", "non-robust", "25%", "all classes", "1.50", "1.00", "-0.50", "-0.50")
    assert capsules.rows[4] == ("4", "dead", "0%", "–", "1.50", "–", "–", "–")
    assert parents.rows == (("hidden 1 to hidden 1", "80%", "40%", "0.50"), ("hidden 1 to hidden 1", "–", "–", "0.50"))
    lines = {series.name: series.points for series in shown.curves[0].series}
    assert lines["gamma-capsule"] == ((0.0, 0.8), (0.05, 0.8), (0.1, 0.6))
    assert set(lines) == {"gamma-capsule", "non-robust", "dead"}  # none was not useful
    assert kind_of(audited(3, 1, 0.8), "hidden 1", 3) == "non-robust"
    assert kind_of(None, "hidden 1", 3) == ""


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
    assert classes_of(audit, "hidden 1", 0) == "Sandal, Sneaker, Ankle boot"
    assert classes_of(audit, "hidden 1", 1) == classes_of(None, "hidden 1", 0) == ""
    told = suffers(audited_study, "hidden 1")
    assert set(told) == {0}
    before, (without_it,) = accuracies_without_each(study.model, "hidden 1", [0], *study.chosen)
    lost = sufferers(before, without_it)
    assert told[0] == tuple(f"{names[k.label]} {100 * k.before:.0f}% → {100 * k.without:.0f}%" for k in lost) or (
        told[0] == ("no class suffers",) and not lost
    )
    about = replace(study.about, class_sets={"hidden 1": ((1, 3),)})
    trained = with_pictures(study, audit=None, about=about)
    assert speaks_for(trained, "hidden 1", 0) == "long clothes"
    assert suffers(trained, "hidden 1") == {}


def test_a_card_tells_a_capsule_s_name_and_who_misses_it():
    about = {"kind": "gamma-capsule", "speaks": "<Boots>", "classes": 'A, "B"', "suffers": ("<Boot> 90% → 20%",)}
    drawn = draw_card(CapsuleCard("Capsule 0", Picture(b"", ""), 0.9, (), **about))
    assert '<p class="kind">gamma-capsule: <b title="A, &quot;B&quot;">&lt;Boots&gt;</b></p>' in drawn
    assert '<p class="kind">Without it: &lt;Boot&gt; 90% → 20%</p>' in drawn
    assert "trained for: <b" in draw_card(CapsuleCard("Capsule 0", Picture(b"", ""), 0.9, (), speaks="shoes"))


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


@pytest.mark.parametrize(
    ("value", "words"), [(None, ""), (0.0, "0"), (3e-9, "below 0.0001"), (0.3333, "0.333"), (12, "12")]
)
def test_a_check_s_number_is_short(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"starts": 0}, "starts must be at least 1, not 0"),
        ({"trees": -1}, "trees must be 0 or more, not -1"),
        ({"eps": 1.5}, "eps must be at most 1, the range of a pixel, not 1.5"),
        ({"tau": 1.0}, "tau must be from 0 to below 1, as lengths are, not 1.0"),
    ],
)
def test_wrong_options_are_named(wrong, words):
    with pytest.raises(InputError, match=words):
        ReportConfig(**wrong)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"others": "nosuch"}, "nosuch"),
        ({"beside": "nosuch"}, "no run's folder nosuch"),
        ({"data": "nosuch"}, "nosuch"),
    ],
)
def test_names_of_nothing_are_refused_before_any_work(run, quick, monkeypatch, named, words):
    def work(*arguments, **keywords):
        raise AssertionError("this takes minutes")

    for name in ("study.activate_all", "sections.trees.pictured_attack", "sections.maps.none_of_the_above"):
        monkeypatch.setattr(f"gammacaps.reporting.{name}", work)
    with pytest.raises(InputError, match=words):
        report_run(run, replace(quick, **named))
