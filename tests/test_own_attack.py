"""An attack of the user's own, in a module of theirs: evaluated, reported and on the explorer's menu."""

import json
import sys

import pytest
import torch

import gammacaps
from gammacaps.attacks import table
from gammacaps.cli import main
from gammacaps.data import load_set
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.robustness import robustness
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
