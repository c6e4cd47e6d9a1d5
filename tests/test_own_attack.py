"""An attack of the user's own, in a module of theirs: evaluated, reported and on the explorer's menu."""

import importlib
import json
import linecache
import sys

import pytest
import torch

import gammacaps
from gammacaps.attacks import Attack, add_attack, table
from gammacaps.cli import main
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.robustness import robustness
from gammacaps.evaluation.specs import Spec
from gammacaps.explorer import answers
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.questions import read_attack
from gammacaps.models import to_config
from gammacaps.models.folder import write_config, write_weights

PLUGIN = '''
"""Makes every image as dark as it may be."""
from gammacaps.attacks import Attack, add_attack

def darker(model, images, labels, eps, generator):
    return (images - eps).clamp_min(0)

add_attack(Attack.from_function("darker", "lights off", darker, sees="nothing"))
'''


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A tiny network's folder, in the working folder beside the user's module."""
    monkeypatch.setattr(table, "_attacks", dict(table._attacks))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_attacks.py").write_text(PLUGIN)
    monkeypatch.setenv("GAMMACAPS_PLUGINS", "my_attacks")
    model = gammacaps.create("small", filters=8, primary_types=2, hidden=(6,), decoder=())
    folder = tmp_path / "mine"
    folder.mkdir()
    names = list(load_set("fashion-mini").class_names)
    training = {"data": "fashion-mini", "eps": 0.1}
    write_config(folder, {"model": to_config(model), "train": training, "data": {"class_names": names}})
    write_weights(folder, model.state_dict())
    yield folder
    sys.modules.pop("my_attacks", None)


@pytest.mark.slow
def test_an_attack_from_outside_works_in_every_verb_and_page(run, capsys):
    options = ["--attacks", "darker", "fgsm", "--limit", "20", "--eps", "0.2", "--device", "cpu"]
    main(["evaluate", str(run), *options])
    assert "lights off eps 0.2" in capsys.readouterr().out
    results = json.loads((run / "results.json").read_text())
    assert [row["attack"] for row in results["attacks"]] == ["fgsm", "darker"]
    row, worst = results["attacks"][1], results["worst"][0]
    assert row["complete"]
    assert set(worst["won"]) == {"fgsm", "darker"}
    inside = next(check for check in results["checks"] if check["check"] == "inside-the-ball")
    assert inside["verdict"] == "pass"
    # The figure is that of the function itself.
    data, model = load_set("fashion-mini"), gammacaps.load(run)
    (kept,) = (run / "evaluation").glob("darker-eps0.2-*.json")
    predicted = json.loads(kept.read_text())["kept"]["predicted"]
    with torch.no_grad():
        for place, answer in predicted.items():
            dark = (data.images[int(place)] - 0.2).clamp_min(0)
            assert int(model(dark.unsqueeze(0)).argmax()) == answer
    main(["report", str(run), "--starts", "2", "--steps", "2", "--trees", "1", "--images", "20", "--device", "cpu"])
    assert "Lights off, eps 0.2" in (run / "report.html").read_text()
    networks = load_networks([str(run)], ExploreConfig(device="cpu"))
    menu = answers.described(networks[0])["attacks"]
    assert [each["name"] for each in menu] == ["pgd", "fgsm", "vote", "noise", "darker"]
    assert menu[-1] == {"name": "darker", "words": "lights off", "aims": False}
    asked = read_attack({"image": {"sample": 1}, "attack": "darker", "eps": 0.2}, networks)
    assert answers.attack(asked, networks[0], lambda *_: None)["difference"]["largest"] == pytest.approx(0.2, abs=1e-3)
    figures = robustness(model, data.images[:9], data.labels[:9], EvaluateConfig(attacks=("darker",), checks=False))
    assert {row["attack"] for row in figures["attacks"]} == {"darker"}


@pytest.mark.slow
def test_without_its_module_its_figures_are_still_shown_and_it_can_t_be_asked_for(run, capsys, monkeypatch):
    main(["evaluate", str(run), "--attacks", "darker", "--limit", "10", "--eps", "0.2", "--no-checks"])
    monkeypatch.delenv("GAMMACAPS_PLUGINS")
    monkeypatch.setattr(table, "_attacks", {n: a for n, a in table._attacks.items() if n != "darker"})
    main(["report", str(run), "--starts", "2", "--steps", "2", "--trees", "1", "--images", "20", "--device", "cpu"])
    assert "Darker, eps 0.2" in (run / "report.html").read_text()
    with pytest.raises(SystemExit):
        main(["evaluate", str(run), "--attacks", "darker"])
    assert "There is no attack or suite 'darker'" in capsys.readouterr().err


def nan_pixels(model, images, labels, eps, generator):
    return images * torch.nan


def in_place(model, images, labels, eps, generator):
    return images.zero_()


def failing(model, images, labels, eps, generator):
    raise ZeroDivisionError("by zero")


@pytest.fixture
def own_attack():
    """Adds an attack by its function, and takes it out of the table again."""
    names = []

    def add(function, name="mine"):
        add_attack(Attack.from_function(name, "mine", function, sees="nothing"))
        names.append(name)

    yield add
    for name in names:
        table._attacks.pop(name, None)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (nan_pixels, "The attack mine gave pixels that are not finite"),
        (failing, r"The attack mine fails \(ZeroDivision"),
    ],
)
def test_what_a_users_attack_does_wrong_is_one_sentence(own_attack, function, words):
    own_attack(function)
    images, labels = gammacaps.load_data("fashion-mini")
    with pytest.raises(InputError, match=words):
        gammacaps.check(gammacaps.load("fashion-mini"), images[:5], labels[:5], attacks="mine", checks=False)


@pytest.mark.slow
def test_an_attack_that_works_in_place_changes_neither_the_data_nor_what_it_is_measured_by(own_attack):
    own_attack(in_place)
    images, labels = gammacaps.load_data("fashion-mini")
    before = images[:20].clone()
    figures = gammacaps.check(gammacaps.load("fashion-mini"), images[:20], labels[:20], attacks="mine", eps=0.1)
    assert (images[:20] == before).all()
    assert {check["verdict"] for check in figures["checks"] if check["check"] == "inside-the-ball"} == {"fail"}


def test_what_an_older_version_of_an_attack_gave_is_not_used(own_attack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = "def mine(model, images, labels, eps, generator):\n    return {}\n"
    accuracies = []
    for content in ("images", "images * 0"):
        (tmp_path / "changing_attack.py").write_text(body.format(content))
        monkeypatch.syspath_prepend(tmp_path)
        sys.modules.pop("changing_attack", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        own_attack(importlib.import_module("changing_attack").mine)
        results = gammacaps.evaluate("fashion-mini", attacks="mine", limit=30, checks=False, quiet=True, eps=0.1)
        accuracies.append(results["attacks"][0]["accuracy"])
    sys.modules.pop("changing_attack", None)
    assert accuracies[1] < accuracies[0]


def test_ours_are_known_by_their_numbers_alone():
    assert all(attack.code is None for attack in table.all_attacks())
    # The name of a file that earlier versions wrote.
    assert Spec("pgd", 0.1, 40, 0.01, 1, "margin").key == "pgd-eps0.1-ccb79350"
