"""Networks trained alike: what is asked for, what a row keeps, and that the tables say what the bits say."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from benchmarks.alike import command
from benchmarks.alike.beyond_table import of_beyond
from benchmarks.alike.compare import cell, difference, difference_cell, figure, right
from benchmarks.alike.measure import packed
from benchmarks.alike.options import Options
from benchmarks.alike.planned import config_of, own_share, planned
from benchmarks.alike.settings import SCALES, SETTINGS
from benchmarks.alike.tables import tables
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.evaluation.by_image import ByImage
from gammacaps.evaluation.paired import paired_difference
from gammacaps.training.new_model import new_model

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "training" / "recipes"
ALIKE = ("data", "eps", "attack_steps", "attack_step", "attack_start", "eps_ramp")
CHANGED = ("turn", "zoom", "shift", "flip", "brightness", "contrast")
IMAGES = 40


def drawn(seed):
    """So many images, of which each is right or not."""
    return torch.rand(IMAGES, generator=torch.Generator().manual_seed(seed)) < 0.7


def row(network, gamma=0.0, seed=0, **changed):
    """What a network would have left, its bits drawn by chance."""
    clean = drawn(10 * ("SDA", "RBA", "CNN").index(network) + int(10 * gamma) + seed)
    pgd, worst = clean & drawn(seed + 3), clean & drawn(seed + 3) & drawn(seed + 7)
    bits = ByImage(torch.arange(IMAGES), {"clean": clean, "pgd@0.1": pgd, "worst@0.1": worst})
    shares = [{"attack": "pgd", "accuracy": pgd.double().mean().item()}]
    figures = {
        "clean": {"accuracy": clean.double().mean().item()},
        "worst": {"accuracy": worst.double().mean().item()},
    }
    figures |= {"attacks": shares, "audit": None, "beyond": None, "T": 0.5, "D": 0.25, "D0": None}
    one = {"data": "fashion-mnist-0.1", "network": network, "gamma": gamma, "trained": "attacked", "seed": seed}
    known = {
        "eps": 0.1,
        "weights": 7,
        "weights_of_decoder": 0,
        "seconds": {"training": 10.0 + 2 * seed, "measuring": 1.0},
    }
    return {**one, **Options().shared(), **known, "figures": figures, "bits": packed(bits, 100, 0.1), **changed}


def run(monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["alike", *map(str, options)])
    with pytest.raises(SystemExit) as ended:
        command.main()
    return ended.value.code


@pytest.mark.parametrize("recipe", ["mnist", "fashion-mnist", "fashion-mnist-0.3", "smallnorb"])
def test_settings_are_those_of_the_recipes(recipe):
    asked = tomllib.loads((RECIPES / f"{recipe}.toml").read_text())
    name = recipe if recipe == "fashion-mnist-0.3" else f"{recipe}-{asked['eps']:g}"
    assert SETTINGS[name].training == {key: value for key, value in asked.items() if key in (*ALIKE, *CHANGED)}


def test_a_cnn_is_planned_once_and_without_the_objective():
    names = [one.name for one in planned(Options(gamma=(0.0, 0.3, 0.3), seeds=(1,), trained=("attacked", "clean")))]
    assert names == [
        f"fashion-mnist-0.1-{network}-{trained}-seed-1"
        for trained in ("attacked", "clean")
        for network in ("SDA-gamma-0", "SDA-gamma-0.3", "RBA-gamma-0", "RBA-gamma-0.3", "CNN-gamma-0")
    ]
    assert [one.network for one in planned(Options(gamma=(0.3,), seeds=(0,)))] == ["SDA", "RBA", "CNN"]


def test_networks_are_trained_alike():
    options = Options(seeds=(3,), attack_steps=2, eps_ramp=0.5)
    configs = [vars(config_of(one, options)) for one in planned(options)]
    own = ("preset", "routing", "model", "gamma")
    assert all({**one, **dict.fromkeys(own)} == {**configs[0], **dict.fromkeys(own)} for one in configs)
    told = configs[0]
    assert (told["attack_steps"], told["attack_step"], told["eps_ramp"], told["seed"]) == (2, 0.075, 0.5, 3)
    assert told["robust"]
    assert not told["validate"]  # no images choose weights
    assert not any(config_of(one, Options()).falls_short() for one in planned(Options(data=tuple(SETTINGS))))
    clean = Options(trained=("clean",), attack_steps=1)
    assert not any(config_of(one, clean).robust for one in planned(clean))


@pytest.mark.slow
@pytest.mark.parametrize("scale", list(SCALES))
def test_all_networks_of_a_scale_have_the_same_convolutions(scale):
    options, stems = Options(scale=scale, gamma=(0.0,), seeds=(0,)), []
    data = load_set("fashion-mini", "test")
    for one in planned(options):
        model = new_model(config_of(one, options), data)
        stems.append([tuple(weight.shape) for weight in model.parameters() if weight.ndim == 4])
    assert stems[0] == stems[1]
    assert stems[2] == stems[0][: len(stems[2])]  # those of the primary capsules come after


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_shares_deal_every_network_exactly_once(parts):
    options = {"data": tuple(SETTINGS), "trained": ("attacked", "clean")}
    dealt = [own_share(Options(share=f"{k + 1}/{parts}", **options)) for k in range(parts)]
    every = planned(Options(**options))
    assert sorted(one.name for share in dealt for one in share) == sorted(one.name for one in every)
    assert max(map(len, dealt)) <= len(every) / parts + 4
    for share in dealt:
        seeds = [one.seed for one in share]
        assert seeds == sorted(seeds)
        assert set(seeds) == {0, 1}


def test_a_difference_is_the_paired_one_of_seeds_that_both_have():
    sda, cnn = [row("SDA", seed=s) for s in (0, 1, 2)], [row("CNN", seed=s) for s in (1, 0)]
    for attack in ("clean", "pgd", "worst"):
        found = difference(sda, cnn, attack)
        pairs = [[right(side[k], attack) for k in places] for side, places in ((sda, (0, 1)), (cnn, (1, 0)))]
        assert found == paired_difference(*pairs)
        assert difference_cell(found) in tables([*sda, *cnn])
    assert difference(sda, [row("CNN", seed=9)], "clean") is None
    without = [one | {"bits": {k: v for k, v in one["bits"].items() if "pgd" not in k}} for one in cnn]
    assert difference(sda, without, "pgd") is None
    assert difference_cell(None) == "–"


def test_tables_keep_other_options_apart_and_tell_seeds():
    rows = [row(network, gamma, seed) for network in ("SDA", "RBA") for gamma in (0.0, 0.3) for seed in (1, 0)]
    text = tables([*rows, row("CNN"), row("SDA", steps=9)])
    assert text.count("**What the gamma objective is worth.**") == 2
    assert text.count("9 steps of 128 images") == 1
    assert text.count("**What capsules cost or gain.**") == 1  # the other has one network alone
    for words in ("SDA, gamma 0.3 less gamma 0", "RBA, gamma 0.3 less gamma 0", "SDA, gamma 0.3, less RBA"):
        assert text.count(words) == 1
    (line,) = (line for line in text.splitlines() if line.startswith("| fashion-mnist-0.1 | attacked | SDA | 0 | 7 |"))
    assert "| 11 [10, 12] |" in line  # seconds of training, seeds in their order
    assert cell(rows[:2], figure("D0")) == "–"
    assert cell(rows[:2], figure("audit", "gamma", 0)) == "–"
    assert tables([]) == "There are no networks yet."


def test_what_fails_is_told_and_the_rest_is_made(monkeypatch, tmp_path, capsys):
    def made(one, options):
        if one.network == "RBA":
            raise InputError("It does not fit: use a smaller one.")
        return {**row(one.network, one.gamma, one.seed), **one.asked(options)}

    monkeypatch.setattr(command, "made", made)
    out = tmp_path / "rows.jsonl"
    asked = ("--seeds", 0, "--gamma", 0.3, "--out", out)
    assert run(monkeypatch, *asked) == 1
    assert "fashion-mnist-0.1-RBA-gamma-0.3-attacked-seed-0: It does not fit" in capsys.readouterr().err
    assert [json.loads(line)["network"] for line in out.read_text().splitlines()] == ["SDA", "CNN"]
    assert run(monkeypatch, *asked, "--minutes", 1e-9) == 0
    assert "Time is over: 1 network is left. The same command goes on with it." in capsys.readouterr().err
    assert run(monkeypatch, *asked, "--dry-run") == 0
    listed = capsys.readouterr().out
    assert listed.count("  done") == 2
    assert "3 networks, 1 left" in listed
    assert run(monkeypatch, *asked, "--dry-run", "--share", "4/4") == 0
    assert "0 networks, 0 left" in capsys.readouterr().out
    assert run(monkeypatch, "--tables", "--out", out) == 0
    assert "SDA, gamma 0.3, less CNN" in capsys.readouterr().out
    assert len(out.read_text().splitlines()) == 2


def test_what_else_they_withstand_is_looked_up_by_norm_and_radius():
    def beyond(*norms):
        told = {"clean": {"accuracy": 0.9}, "spatial": {"accuracy": 0.5}, "corruptions": {"mean": 0.6}, "unseen": []}
        rows = [{"norm": norm, "eps": eps, "accuracy": right} for norm, eps, right in norms]
        return {**told, "calibration": 0.1, "norms": rows}

    rows = [row("SDA"), row("SDA", seed=1), row("CNN")]
    norms = (
        [("linf", 8 / 255, 0.4), ("l2", 1.5, 0.3)],
        [("l2", 2.0, 0.2), ("linf", 8 / 255, 0.6)],
        [("l2", 1.5, 0.1)],
    )
    for one, own in zip(rows, norms, strict=True):
        one["figures"]["beyond"] = beyond(*own)
    lines = [line.split(" | ") for line in of_beyond(rows).splitlines() if line.startswith("| fashion")]
    assert [line[5:7] for line in lines] == [
        ["50.0 [40.0, 60.0] at 8/255", "30.0 at 1.5; 20.0 at 2"],
        ["–", "10.0 at 1.5"],
    ]


def test_threads_sleep_while_they_wait():
    """Set before torch is imported, which reads it."""
    code = (
        "import os, runpy, sys, types\n"
        "stand_in = types.ModuleType('command')\n"
        "stand_in.main = lambda: print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])\n"
        "sys.modules['benchmarks.alike.command'] = stand_in\n"
        "runpy.run_module('benchmarks.alike', run_name='__main__')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "passive"]


@pytest.mark.slow
def test_the_command_trains_measures_and_makes_nothing_twice(monkeypatch, tmp_path, capsys):
    out, runs = tmp_path / "rows.jsonl", tmp_path / "runs"
    small = ("--steps", 2, "--batch", 8, "--images", 20, "--audited", 10, "--beyond", 10, "--attack-steps", 1)
    asked = ("--data", "fashion-mini-0.1", "--networks", "SDA", "CNN", "--gamma", 0.3, "--seeds", 0, "--attacks", "pgd")
    options = (*asked, *small, "--device", "cpu", "--out", out, "--runs", runs)
    assert run(monkeypatch, *options) == 0
    first, rows = capsys.readouterr().out, [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["network"] for one in rows] == ["SDA", "CNN"]
    for one in rows:
        assert {"device", "torch", "commit"} <= one["machine"].keys()
        assert one["figures"]["clean"]["accuracy"] == right(one, "clean").right.mean()
        assert one["figures"]["attacks"][0]["accuracy"] == right(one, "pgd").right.mean()
        assert one["figures"]["worst"]["accuracy"] == right(one, "worst").right.mean()
        assert len(right(one, "worst").places) == 20
        assert one["figures"]["beyond"]["clean"]["images"] == 10
    assert rows[0]["figures"]["audit"]["capsules"] == 16
    assert rows[1]["figures"]["audit"] is None
    for title in ("What the gamma objective is worth", "What capsules cost or gain", "What else they withstand"):
        assert title in first
    assert run(monkeypatch, *options) == 0
    assert capsys.readouterr().out == first
    assert len(out.read_text().splitlines()) == 2
    out.unlink()  # what is in the folders of the runs is not made again
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("audit.json")}
    assert run(monkeypatch, *options) == 0
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("audit.json")} == before
    capsys.readouterr()
    assert run(monkeypatch, *options, "--steps", 3) == 1
    assert "trained by other options than these: move it away, or name other --runs." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "mnist-0.4"], "There is no setting of data 'mnist-0.4'"),
        (["--networks", "SDB"], "There is no network 'SDB'"),
        (["--trained", "well"], "There is no way to train 'well'"),
        (["--attacks", "hope"], "There is no attack or suite 'hope'"),
        (["--steps", "0"], "steps must be at least 1, not 0"),
        (["--beyond", "-1"], "beyond must be 0 or more, not -1"),
        (["--share", "3/2"], "share must be a part such as 2/5"),
        (["--seeds", "-1"], "seed must be from 0"),
        (["--gamma", "-1"], "gamma must be 0 or more"),
        (["--tables", "--out", "broken.jsonl"], "does not hold lines of JSON"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(monkeypatch, tmp_path, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.jsonl").write_text("{")
    assert words in run(monkeypatch, *options)
