"""What the worker answers, against the server's answers to the same questions."""

import base64
import dataclasses
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from serving import make_run

import gammacaps
from gammacaps.explain.kept_inputs import inputs_of, usual_way
from gammacaps.explain.looks import looks_at, tinted
from gammacaps.explorer import answers, questions
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.static.folder import write_folder
from gammacaps.runs.run import Run

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def quiet(done, of):
    """No progress."""


@pytest.fixture(scope="module")
def ask(worker_of, both_folder):
    return worker_of(both_folder)


def pixels(url):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")).astype(int)


def same(found, wanted, near=2e-4):
    """Equal values, numbers to what rounding can do; in drawings, where there are two digits, to a hundredth."""
    if isinstance(wanted, str) and wanted.startswith("data:image"):
        assert np.abs(pixels(found) - pixels(wanted)).max() <= 2
    elif isinstance(wanted, str) and wanted.startswith("<svg"):
        assert NUMBER.sub("#", found) == NUMBER.sub("#", wanted)
        mine, theirs = (np.array([float(each) for each in NUMBER.findall(words)]) for words in (found, wanted))
        assert np.abs(mine - theirs).max() < 0.011
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            same(found[key], value, near)
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for mine, theirs in zip(found, wanted, strict=True):
            same(mine, theirs, near)
    elif isinstance(wanted, float):
        assert abs(found - wanted) < near
    else:
        assert found == wanted


QUESTIONS = {
    "a test image": {"image": {"sample": 3}, "off": []},
    "the other network": {"image": {"sample": 4}, "network": 1, "off": []},
    "a higher threshold, all capsules": {"image": {"sample": 7}, "tau": 0.4, "all": True, "off": []},
    "a threshold that no class capsule reaches": {"image": {"sample": 7}, "tau": 0.8, "off": []},
    "capsules off": {"image": {"sample": 8}, "off": [[0, 5], [1, 2]]},
    "the last iteration alone": {"image": {"sample": 9}, "last": True, "off": []},
    "pixels": {"image": {"pixels": base64.b64encode(bytes(range(256)) * 3 + bytes(16)).decode()}, "off": []},
    "an empty image": {"image": {"pixels": base64.b64encode(bytes(784)).decode()}, "off": []},
    "turned and shifted": {"image": {"sample": 5}, "off": [], "change": {"turn": 25, "right": 2.5, "down": -3}},
    "blurred and darkened": {"image": {"sample": 6}, "off": [], "change": {"blur": 1.2, "dark": 0.3}},
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_trees_sentences_and_scores_are_the_server_s(ask, networks, what):
    asked = {"network": 0, "tau": 0.1, "all": False, **QUESTIONS[what]}
    wanted = answers.parse(questions.read_parse(asked, networks), networks[asked["network"]])
    same(ask("/api/parse", asked), wanted)


def test_named_capsules_are_drawn_and_told_by_their_names(worker_of, tmp_path):
    sets = [[0, 2], [5, 7, 9], [1], [3, 4], [5, 7, 9], [8]]
    (network,) = load_networks([str(named_run(tmp_path / "named", sets))], ExploreConfig())
    assert network.names
    write_folder([network], tmp_path / "page")
    ask = worker_of(tmp_path / "page")
    for sample in range(6):
        asked = {"image": {"sample": sample}, "tau": 0.3, "all": sample > 3, "off": []}
        same(ask("/api/parse", asked), answers.parse(questions.read_parse(asked, [network]), network))
    tall = {"image": {"sample": 0}, "all": True, "tau": 0.0, "off": []}
    same(ask("/api/parse", tall), answers.parse(questions.read_parse(tall, [network]), network))


def named_run(folder, sets):
    run = make_run(folder)
    config = json.loads((run / "config.json").read_text())
    config["class_sets"] = {"hidden 1": sets}
    (run / "config.json").write_text(json.dumps(config))
    return run


@pytest.mark.parametrize("attack", ["pgd", "fgsm", "vote", "noise"])
@pytest.mark.parametrize("place", [0, 1])
def test_attacks_go_where_the_server_s_go(ask, networks, attack, place):
    aims = {} if attack == "noise" else {"target": 4}
    for more in ({"eps": 0.1}, {"eps": 0.3, **aims}, {"eps": 0.2, "coarse": True, "off": [[1, 1]]}):
        asked = {
            "network": place,
            "image": {"sample": 3},
            "tau": 0.1,
            "all": False,
            "off": [],
            "attack": attack,
            **more,
        }
        found = ask("/api/attack", asked)
        wanted = answers.attack(questions.read_attack(asked, networks), networks[place], quiet)
        assert found.keys() == wanted.keys()
        for key in ("eps", "attack", "target", "label", "clean"):
            same(found[key], wanted[key])
        # A gradient that is nearly 0 may have either sign, and a step more or less is another point.
        unlike = pixels(found["attacked"]["png"]) != pixels(wanted["attacked"]["png"])
        assert unlike.mean() < 0.02
        assert np.abs(np.subtract(found["attacked"]["scores"], wanted["attacked"]["scores"])).max() < 0.01
        assert found["difference"]["magnified"] == wanted["difference"]["magnified"]
        assert abs(found["difference"]["largest"] - wanted["difference"]["largest"]) < 2e-4
        assert len(found["drawings"][1]) == len(wanted["drawings"][1])
        if not unlike.any():
            same(found, wanted)


def test_the_smallest_eps_that_breaks_is_the_server_s(ask, networks):
    asked = {"network": 0, "image": {"sample": 3}, "tau": 0.1, "all": False, "off": [], "attack": "pgd"}
    found = ask("/api/breaking", asked)
    wanted = answers.breaking(questions.read_breaking(asked, networks), networks[0], quiet)
    assert found.keys() == wanted.keys()
    assert abs(found["eps"] - wanted["eps"]) < 0.0051
    assert [found[key] for key in ("attack", "most")] == ["pgd", 0.5]


def test_what_is_known_of_networks_images_and_capsules_is_the_server_s(ask, networks):
    known = [answers.described(network) for network in networks]
    for facts in known:  # but where it lies on the machine that made the page
        facts["given"] = Path(facts["given"]).name
    same(ask("/api/model"), {"networks": known})
    same(ask("/api/samples?count=60"), answers.samples(networks[0], None, 0, 60))
    same(ask("/api/samples?count=5&class=2"), answers.samples(networks[0], 2, 0, 5))
    same(ask("/api/patches?network=1"), answers.patches(networks[1], quiet))
    for place, layer, capsule in ((0, 0, 7), (0, 1, 3), (1, 2, 6)):
        found = ask(f"/api/capsule?network={place}&layer={layer}&capsule={capsule}")
        wanted = answers.capsule(networks[place], layer, capsule)
        same({**found, "examples": 0}, {**wanted, "examples": 0})
        images = networks[place].images[[each["sample"] for each in wanted["examples"]]]
        looks = looks_at(networks[place].model, images, layer, [capsule] * len(images))
        for mine, theirs, tint in zip(found["examples"], wanted["examples"], tinted(images, looks), strict=True):
            theirs.pop("looks")  # which has but a palette of colours
            exact = (255 * tint.permute(1, 2, 0)).round().int().numpy()
            assert np.abs(pixels(mine.pop("looks")) - exact).max() <= 1
            same(mine, theirs)


def test_an_input_that_the_run_s_folder_keeps_is_in_the_page(worker_of, networks, tmp_path):
    gammacaps.save(networks[0].model, tmp_path / "run")
    how = usual_way("class", networks[0].radius)
    numbers = {"starts": questions.STARTS, "steps": questions.STEPS}
    inputs_of(Run(tmp_path / "run"), networks[0].model, "class", [5], **numbers, **how)
    kept = [dataclasses.replace(networks[0], inputs=Run(tmp_path / "run").inputs())]
    write_folder(kept, tmp_path / "page")
    asked = {"network": 0, "layer": 2, "capsule": 5}
    wanted = answers.activated_before(questions.read_activate(asked, kept), kept[0])
    assert worker_of(tmp_path / "page")("/api/activate", asked) == wanted


def test_an_input_generated_for_a_capsule_activates_it_as_much(worker_of, networks, tmp_path):
    write_folder(networks[:1], tmp_path / "page")
    ask = worker_of(tmp_path / "page")
    for layer, capsule in ((1, 3), (2, 5)):
        asked = {"network": 0, "layer": layer, "capsule": capsule}
        found = ask("/api/activate", asked)
        wanted = answers.activated(questions.read_activate(asked, networks), networks[0], quiet)
        assert found.keys() == wanted.keys()
        assert found["best"][0]["activation"] > 0.9 * wanted["best"][0]["activation"]
        assert abs(found["empty"] - wanted["empty"]) < 2e-4
        assert found["features"].keys() == wanted["features"].keys()
        assert len(found["best"]) == len(wanted["best"])
        assert pixels(found["png"]).shape == (28, 28, 3)
