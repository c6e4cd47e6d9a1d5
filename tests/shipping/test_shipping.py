"""From a run to a shipped network: halved, measured, and never carded with another network's figures."""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import torch
import tyro
from safetensors.torch import load_file

import gammacaps
from gammacaps.cli.options import TrainOptions
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced
from gammacaps.evaluation.run import evaluate_run
from gammacaps.models import to_config
from gammacaps.models.folder import write_config, write_weights
from gammacaps.models.shipped import FILES
from gammacaps.runs.train_config import TrainConfig
from gammacaps.shipping import halve as halving
from gammacaps.shipping.card import card
from gammacaps.shipping.command import main
from gammacaps.shipping.halve import halve, halved, lighter, scores_moved

QUICK = EvaluateConfig(attacks=("paper",), eps=(0.1,), attack_steps=2, limit=20, checks=False, device="cpu")


@pytest.fixture
def run(tmp_path):
    """A tiny network that was never trained, as a finished run."""
    folder = tmp_path / "run"
    folder.mkdir()
    model = gammacaps.create("small", filters=8, primary_types=2, hidden=(6,), decoder=(16,))
    config = dataclasses.asdict(TrainConfig(eps=0.1, seed=3, data_dir="/home/me/data"))
    described = {
        "name": "fashion-mini",
        "source": "/home/me/data/x.gz",
        "class_names": [*"abcdefghij"],
        "train_images": 2000,
    }
    write_config(folder, {"model": to_config(model), "train": config, "data": described, "machine": {"torch": "2.13"}})
    write_weights(folder, model.state_dict())
    (folder / "metrics.jsonl").write_text('{"step": 7, "seconds": 1.0}\n')
    return folder


def test_halving_keeps_the_network_and_drops_the_machine(run, tmp_path):
    about = halve(run, tmp_path / "half")
    stored = json.loads((tmp_path / "half" / "config.json").read_text())
    assert about == {"precision": "float16", "scores_moved": about["scores_moved"], "trained_steps": 7} | {
        "measured_on": "fashion-mini"
    }
    assert stored["train"]["data_dir"] is None
    assert "source" not in stored["data"]
    assert all(t.dtype == torch.float16 for t in load_file(tmp_path / "half" / "model.safetensors").values())
    images, _ = balanced(load_set("fashion-mini"), 200)
    difference = (gammacaps.load(run)(images) - gammacaps.load(tmp_path / "half")(images)).abs().max().item()
    assert difference == pytest.approx(about["scores_moved"], abs=1e-6)
    assert 0 < difference < 1e-3


def test_the_kind_that_moves_the_scores_less_is_taken(run, tmp_path):
    """Beyond float16's range only bfloat16 holds the weights."""
    weights = load_file(run / "model.safetensors")
    weights["encoder.0.weight"][0, 0, 0, 0] = 1e6
    write_weights(run, weights)
    assert halve(run, tmp_path / "half")["precision"] == "bfloat16"


def test_the_decoder_goes_only_where_the_file_would_be_too_large(run, monkeypatch):
    model = gammacaps.load(run)
    assert lighter(model) is model
    monkeypatch.setattr(halving, "LIMIT", 2 * sum(p.numel() for p in model.parameters()))
    bare = lighter(model)
    assert bare.config.decoder == ()
    images = torch.rand(3, 1, 28, 28)
    assert torch.equal(bare(images), model(images))
    assert scores_moved(model, halved(model, torch.float32), images) == 0


def test_what_stays_too_large_is_refused_and_leaves_nothing(run, tmp_path, monkeypatch):
    monkeypatch.setattr(halving, "LIMIT", 1000)
    with pytest.raises(InputError, match="in half precision, but at most 1,000 can be shipped"):
        halve(run, tmp_path / "half")
    assert not (tmp_path / "half").exists()


@pytest.mark.slow
def test_a_card_is_of_these_weights_and_of_no_others(run, tmp_path):
    with pytest.raises(InputError, match="is not halved"):
        card(run, "tiny", shipped=tmp_path)
    evaluate_run(run, QUICK, quiet=True)
    halve(run, tmp_path / "half")
    (tmp_path / "half" / "results.json").write_bytes((run / "results.json").read_bytes())
    with pytest.raises(InputError, match=r"results\.json is not of the weights beside it: measure them with"):
        card(tmp_path / "half", "tiny", shipped=tmp_path)
    results = evaluate_run(tmp_path / "half", QUICK, quiet=True)
    (tmp_path / "half" / "results.json").write_text(json.dumps({**results, "complete": False}))
    with pytest.raises(InputError, match=r"results\.json is not complete: go on with gammacaps evaluate"):
        card(tmp_path / "half", "tiny", shipped=tmp_path)
    more = {**results, "settings": {**results["settings"], "limit": 10_000}}  # than there are
    (tmp_path / "half" / "results.json").write_text(json.dumps(more))
    folder = card(tmp_path / "half", "tiny", shipped=tmp_path / "weights")
    assert sorted(p.name for p in folder.iterdir()) == sorted((*FILES, "results.json"))
    text = (folder / "README.md").read_text()
    row = results["attacks"][1]
    table = re.search(r"\| \| eps 0\.1 \|\n\| --- \| --- \|\n((\| .+ \| .+ \|\n)+)", text)[1]
    assert re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) == ["clean", "FGSM", "PGD-2", "**worst case**"]
    assert f"| PGD-2 | {100 * row['accuracy']:.1f} ({100 * row['interval'][0]:.1f} to " in table
    assert f"| T (1 is a perfect tree) | {results['T']['mean']:.3f} |" in text
    line = re.search(r"    gammacaps train (.*) --out runs/my-tiny\n", text)[1]
    told = tyro.cli(TrainOptions, args=shlex.split(line), config=(tyro.conf.OmitArgPrefixes,)).train
    assert told == TrainConfig(eps=0.1, seed=3)
    assert "--eps-ramp 0.25" in line  # told though it is the default, which may change
    assert "7 steps of 128 images" in text
    assert "(preset small)" in text
    assert "with the gamma objective (0.3)" in text
    assert "--limit 20 " in text
    assert card(tmp_path / "half", "tiny", shipped=tmp_path / "weights") == folder  # again: the same, replaced


def test_the_command_says_what_to_do_next(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["shipping", "halve", str(run), str(tmp_path / "half")])
    main()
    assert f"Measure it with: gammacaps evaluate {tmp_path / 'half'}" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["shipping", "card", str(tmp_path / "half"), "tiny"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "There is no file" in capsys.readouterr().err


@pytest.mark.slow
def test_threads_of_its_command_sleep_while_they_wait():
    """Set before torch is imported, which reads it."""
    code = (
        "import os, runpy, sys, types\n"
        "stand_in = types.ModuleType('command')\n"
        "stand_in.main = lambda: print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])\n"
        "sys.modules['gammacaps.shipping.command'] = stand_in\n"
        "runpy.run_module('gammacaps.shipping', run_name='__main__')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "passive"]
