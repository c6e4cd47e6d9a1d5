"""From a run's folder to its page."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from stored import stored

from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.reporting.accuracies import earlier
from gammacaps.reporting.command_line import options
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.page import render
from gammacaps.reporting.run import report_run
from gammacaps.reporting.sections.audit import shown_audit
from gammacaps.reporting.sections.network import lead
from gammacaps.reporting.sections.rerun import commands
from gammacaps.reporting.sections.scores import scores
from gammacaps.reporting.study import of_data, open_study


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
    assert sorted(capsule.number for capsule in contents["hidden"].layers[0].cards) == list(range(6))
    assert [tree.title for tree in contents["trees"].trees] == ["T-shirt", "Sandal"]
    first = contents["trees"].trees[0]
    assert first.attacked.content != first.clean.content
    with torch.no_grad():
        shown = study.capsules["hidden 1"][4].generated
        length = study.model.parse(shown.image.unsqueeze(0)).activations[1][0, 4].item()
    card = next(card for card in contents["hidden"].layers[0].cards if card.number == 4)
    assert card.length == pytest.approx(length, abs=1e-3)  # the image is kept in 256 levels


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


def test_options_are_written_as_a_shell_reads_them():
    values = {"data": "my data.npz", "eps": [0.1, 0.25], "robust": True, "checks": False, "same": 1, "unknown": 2}
    defaults = {"data": None, "eps": (), "robust": False, "checks": True, "same": 1}
    assert options(values, defaults) == " --data 'my data.npz' --eps 0.1 0.25 --robust --no-checks"


@pytest.mark.parametrize(("name", "verb"), [("results.json", "evaluate"), ("audit.json", "audit")])
@pytest.mark.parametrize("content", ["[]", "null", '{"format": 99}', '{"format": 1}'])
def test_figures_of_another_kind_are_one_sentence(tmp_path, name, verb, content):
    folder = tmp_path / "run"
    stored(folder, "cnn", filters=(4, 4), width=8)
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=f"make it again with gammacaps {verb}"):
        report_run(folder, ReportConfig(data="fashion-mini", images=10, device="cpu"))


@pytest.mark.slow
def test_a_plain_network_has_a_page_without_capsules(tmp_path):
    run = stored(tmp_path / "cnn", "cnn", filters=(4, 4))
    page = report_run(run, ReportConfig(data="fashion-mini", images=20, device="cpu")).read_text()
    assert re.findall(r'<section id="(\w+)"', page) == ["images", "network", "scores", "maps", "rerun"]
    assert "How it was trained is not recorded." in page


@pytest.mark.slow
def test_a_network_whose_capsules_depend_on_neighbours_has_a_page_without_them(tmp_path):
    tiny = {"filters": 8, "primary_types": 2, "hidden": (6,), "decoder": (16,)}
    run = stored(tmp_path / "batch", "small", scale_over="batch", **tiny)
    page = report_run(run, ReportConfig(data="fashion-mini", images=20, device="cpu")).read_text()
    assert re.findall(r'<section id="(\w+)"', page) == ["images", "network", "scores", "maps", "rerun"]
    assert "Its capsules are not shown here: with scale_over=&#x27;batch&#x27;, what they say of an image" in page
    other = open_study(run, ReportConfig(data="fashion-mini", images=20, device="cpu"))
    other.model.neighbours_option = None  # as of a network that has no such option
    assert "not shown here: what they say of an image depends on the images beside it." in lead(other)


def test_data_that_does_not_fit_is_named(run, tmp_path):
    small = tmp_path / "small.npz"
    np.savez(small, images=np.zeros((20, 8, 8), np.uint8), labels=np.arange(20) % 2)
    with pytest.raises(InputError, match=r"takes images of shape \(1, 28, 28\) in 10 classes, but .* give data like"):
        open_study(run, ReportConfig(data=str(small)))


def test_a_run_that_does_not_name_its_data_asks_for_it(quick, tmp_path):
    run = stored(tmp_path / "bare", "small", filters=8, primary_types=2, hidden=(6,), decoder=())
    with pytest.raises(InputError, match="does not say what it was trained on: name a data set with --data"):
        open_study(run, quick)


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
        ({"beside": "nosuch"}, "no run folder 'nosuch'"),
        ({"data": "nosuch"}, "nosuch"),
    ],
)
def test_names_of_nothing_are_refused_before_any_work(run, quick, monkeypatch, named, words):
    def work(*arguments, **keywords):
        raise AssertionError("this takes minutes")

    for name in ("study.inputs_of", "pictured.pictured_attack", "sections.maps.none_of_the_above"):
        monkeypatch.setattr(f"gammacaps.reporting.{name}", work)
    with pytest.raises(InputError, match=words):
        report_run(run, replace(quick, **named))
