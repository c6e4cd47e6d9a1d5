"""From a run's folder to its page and its files."""

import json
import re

import numpy as np
import pytest
import torch

import gammacaps
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.run import evaluate_run
from gammacaps.models import to_config
from gammacaps.models.stored import write_config, write_weights
from gammacaps.report.collect import collect
from gammacaps.report.config import ReportConfig
from gammacaps.report.fill import report_of
from gammacaps.report.fill.again import options
from gammacaps.report.fill.audited import audit, kind_of
from gammacaps.report.fill.capsules import layer
from gammacaps.report.fill.figures import curve, number
from gammacaps.report.fill.trees import trees_of
from gammacaps.report.page import render
from gammacaps.report.run import explain_run, report_run
from gammacaps.training import loop
from gammacaps.training.config import TrainConfig

QUICK = ReportConfig(starts=2, steps=2, trees=2, images=20, device="cpu")
TINY = ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A tiny network that was trained for a few steps under attack, and measured."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    training = TrainConfig(model=TINY, batch=32, steps=3, eps=0.1, attack_steps=1, device="cpu", log_every=1)
    loop.train(training, folder)
    evaluation = EvaluateConfig(
        attacks=("paper",), eps=(0.05, 0.1), limit=20, attack_steps=2, checks=False, device="cpu"
    )
    evaluate_run(folder, evaluation, quiet=True)
    return folder


@pytest.fixture(scope="module")
def found(run):
    return collect(run, QUICK)


@pytest.fixture(scope="module")
def report(found):
    return report_of(found)


def stored(folder, preset, **changes):
    """A network that was never trained, as a run."""
    model = gammacaps.create(preset, **changes)
    folder.mkdir()
    write_config(folder, {"model": to_config(model), "train": {}})
    write_weights(folder, model.state_dict())
    return folder


def test_the_page_says_what_the_run_s_own_files_say(run, found, report):
    results = json.loads((run / "results.json").read_text())
    rows = {row.name: row.accuracy for row in report.scores.rows}
    assert rows["Clean"] == results["clean"]["accuracy"]
    assert rows["PGD-2, eps 0.1"] == next(
        r["accuracy"] for r in results["attacks"] if r["eps"] == 0.1 and r["steps"] == 2
    )
    assert len(report.curve.series[0].points) == 3  # clean, and two radii
    assert report.curve.marks == (("trained at this eps", 0.1),)
    assert "for 3 steps of 32 images" in report.lead
    assert f"{sum(p.numel() for p in found.model.parameters()):,}" == report.facts[0].value
    # A picture and a training image for each class, one for each hidden capsule, trees of two classes.
    assert [capsule.name for capsule in report.class_capsules] == list(load_set("fashion-mini").class_names)
    assert [capsule.name for capsule in report.hidden[0].capsules] == [f"Capsule {k}" for k in range(6)]
    assert [tree.title for tree in report.trees] == ["T-shirt", "Sandal"]
    assert report.trees[0].attacked.content != report.trees[0].clean.content
    with torch.no_grad():
        shown = found.capsules["hidden 1"][4].generated
        length = found.model.parse(shown.image.unsqueeze(0)).activations[1][0, 4].item()
    assert report.hidden[0].capsules[4].length == pytest.approx(length, abs=1e-6)


def test_a_page_is_written_and_the_same_each_time(run, report):
    path = report_run(run, QUICK)
    assert path == run / "report.html"
    page = path.read_text()
    for section in ("network", "scores", "strength", "classes", "hidden", "trees", "maps", "rerun"):
        assert f'<section id="{section}"' in page
    assert len(page) < 5_000_000
    assert render(report) == page


def test_the_commands_on_the_page_are_the_ones_that_made_it(run, report):
    commands = {command.line for command in report.commands}
    assert f"gammacaps report {run} --starts 2 --steps 2 --trees 2 --images 20 --device cpu" in commands
    evaluated = next(line for line in commands if line.startswith("gammacaps evaluate"))
    assert "--attacks paper --eps 0.05 0.1" in evaluated
    assert "--limit 20" in evaluated
    assert "--no-checks" in evaluated


def test_options_are_written_as_a_shell_reads_them():
    values = {"data": "my data.npz", "eps": [0.1, 0.25], "robust": True, "checks": False, "same": 1, "unknown": 2}
    defaults = {"data": None, "eps": (), "robust": False, "checks": True, "same": 1}
    assert options(values, defaults) == " --data 'my data.npz' --eps 0.1 0.25 --robust --no-checks"


def test_explaining_writes_every_picture_and_its_numbers(run, found, monkeypatch):
    monkeypatch.setattr("gammacaps.report.run.collect", lambda *_: found)  # as it is, to save the time
    folder = explain_run(run, QUICK)
    names = {path.name for path in folder.iterdir()}
    assert {f"class-{k}.png" for k in range(10)} | {f"hidden-1-{k}.png" for k in range(6)} <= names
    capsules = json.loads((folder / "capsules.json").read_text())
    assert len(capsules["layers"]["class"]) == 10
    assert set(capsules["layers"]["hidden 1"][0]) >= {"capsule", "activation", "scores", "features", "picture"}
    for name in ("activation-map", "class-map", "coupling-map", "confusion", "filters", "reconstruction"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        json.loads((folder / f"{name}.json").read_text())
    assert (folder / "tree-2.svg").read_text().startswith("<svg")
    tree = json.loads((folder / "tree-2.json").read_text())
    assert tree["label"] == 5
    assert tree["clean"]["tau"] == 0.1


def test_a_file_in_the_place_of_the_folder_is_named(found, monkeypatch, tmp_path):
    monkeypatch.setattr("gammacaps.report.run.collect", lambda *_: found)
    (tmp_path / "explain").write_text("mine")
    with pytest.raises(InputError, match=r"explain can't be made a folder \(File exists\): move what is there"):
        explain_run(tmp_path, QUICK)


def test_a_plain_network_has_a_page_without_capsules(tmp_path):
    run = stored(tmp_path / "cnn", "cnn", filters=(4, 4))
    page = report_run(run, ReportConfig(data="fashion-mini", images=20, device="cpu")).read_text()
    assert re.findall(r'<section id="(\w+)"', page) == ["network", "scores", "maps", "rerun"]
    assert "How it was trained is not recorded." in page


def test_matrix_capsules_are_shown_by_the_most_active(tmp_path):
    run = stored(tmp_path / "matrix", "matrix", filters=4, primary_types=2, types=(3, 3))
    config = ReportConfig(data="fashion-mini", images=10, starts=1, steps=1, capsules=4, trees=0, device="cpu")
    found = collect(run, config)
    layers = [layer(found, name) for name in ("hidden 1", "hidden 2")]
    assert [len(shown.capsules) for shown in layers] == [4, 4]
    assert layers[0].note == "the 4 of 108 capsules that test images activate most"


def test_data_that_does_not_fit_is_named(run, tmp_path):
    small = tmp_path / "small.npz"
    np.savez(small, images=np.zeros((20, 8, 8), np.uint8), labels=np.arange(20) % 2)
    with pytest.raises(InputError, match=r"takes images of shape \(1, 28, 28\) in 10 classes, but .* give data like"):
        collect(run, ReportConfig(data=str(small)))


def test_a_run_that_does_not_name_its_data_asks_for_it(tmp_path):
    run = stored(tmp_path / "bare", "small", filters=8, primary_types=2, hidden=(6,), decoder=())
    with pytest.raises(InputError, match="does not say what it was trained on: name a data set with --data"):
        collect(run, QUICK)


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
            "gamma": None if kind == "dead" else [1.0, -0.5],
            "gamma_any": {"gamma-capsule": 0.25, "non-robust": -0.5, "dead": None}[kind],
        }
        for k, kind in enumerate(kinds)
    ]
    layer = {"layer": "hidden 1", "of": len(kinds), "counts": counts, "capsules": capsules}
    layer["over_eps"] = [{"eps": 0.0, **before}, {"eps": 0.05, **before}, {"eps": 0.1, **counts}]
    layer["over_tau"] = [{"tau": 0.1, **counts}]
    tree = {"from": "primary", "to": "hidden 1", "T": 0.5, "active": 9, "single_parent": single, "margin": 0.4}
    about = {"verdict": "So many are.", "class_names": ["cat", "dog"], "tau": 0.1, "eps": [0.05, 0.1]}
    return {**about, "layers": [layer], "tree": [tree, tree | {"single_parent": None, "margin": None}]}


@pytest.mark.parametrize(
    ("gamma", "others", "single", "expected"),
    [(4, 0, 1.0, "pass"), (4, 0, 0.5, "warn"), (2, 2, 1.0, "warn"), (1, 2, 1.0, "fail"), (0, 0, 1.0, "fail")],
)
def test_an_audit_is_answered_by_the_definition(gamma, others, single, expected):
    assert audit(audited(gamma, others, single)).verdict == expected


def test_an_audit_s_figures_stand_in_its_tables_and_curves():
    shown = audit(audited(3, 1, 0.8))
    assert shown.sentence == "So many are."
    capsules, parents = shown.tables
    assert capsules.head[-3:] == ("gamma, eps 0.05", "gamma, eps 0.1", "best gamma")
    assert capsules.rows[3] == ("3", "non-robust", "25%", "cat, dog", "1.50", "1.00", "-0.50", "-0.50")
    assert capsules.rows[4] == ("4", "dead", "0%", "–", "1.50", "–", "–", "–")
    assert parents.rows == (("primary to hidden 1", "80%", "40%", "0.50"), ("primary to hidden 1", "–", "–", "0.50"))
    lines = {series.name: series.points for series in shown.curves[0].series}
    assert lines["gamma-capsule"] == ((0.0, 0.8), (0.05, 0.8), (0.1, 0.6))
    assert set(lines) == {"gamma-capsule", "non-robust", "dead"}  # none was not useful
    assert kind_of(audited(3, 1, 0.8), "hidden 1", 3) == "non-robust"
    assert kind_of(None, "hidden 1", 3) == ""


def test_trees_that_would_make_the_page_too_large_are_left_out(found, report, monkeypatch):
    first = report.trees[0]
    monkeypatch.setattr("gammacaps.report.fill.trees.ROOM", len(first.clean.content) + len(first.attacked.content))
    assert trees_of(found) == (first,)


def test_the_curve_does_not_draw_the_worst_case_twice(found):
    attack = {"steps": 40, "restarts": 1, "interval": [0.1, 0.9]}
    pgd = [{"attack": "pgd", "eps": eps, "accuracy": 0.5 - eps, **attack} for eps in (0.2, 0.1)]
    worst = [{"eps": row["eps"], "accuracy": row["accuracy"], "interval": [0.1, 0.9]} for row in pgd]
    clean = {"accuracy": 0.9, "interval": [0.8, 1.0]}
    drawn = curve(found, {"clean": clean, "attacks": pgd, "worst": worst})
    assert [(series.name, series.points) for series in drawn.series] == [
        ("PGD-40", ((0.0, 0.9), (0.1, 0.4), (0.2, 0.3)))
    ]
    worst[0]["accuracy"] = 0.2
    assert len(curve(found, {"clean": clean, "attacks": pgd, "worst": worst}).series) == 2
    sweep = [{"attack": "sweep", "eps": 0.3, "accuracy": 0.1, **attack}]
    drawn = curve(found, {"clean": clean, "attacks": pgd, "sweep": sweep})
    assert [series.points for series in drawn.series] == [((0.0, 0.9), (0.3, 0.1))]
    assert curve(found, {"clean": clean, "attacks": []}) is None


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
        ({"eps": 1.5}, "eps must be from 0 to 1, the range of a pixel, not 1.5"),
        ({"tau": 1.0}, "tau must be at least 0 and below 1, not 1.0"),
    ],
)
def test_wrong_options_are_named(wrong, words):
    with pytest.raises(InputError, match=words):
        ReportConfig(**wrong)
