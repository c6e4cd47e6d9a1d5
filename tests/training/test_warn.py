"""Training warns, in words with what to do, where it learns nothing or learns its images by heart; else it is quiet."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from gammacaps.data import load_set
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.runs.warnings import TrainingWarning, add_warning, forget_warnings_after, read_warnings
from gammacaps.training import warn
from gammacaps.training.train import resume, train

STORED = Path(__file__).parents[2] / "docs" / "training"
SMALL = ("filters=8", "primary_types=4", "hidden=[6]", "decoder=[]")


def brief(**changes) -> TrainConfig:
    values = {"model": SMALL, "batch": 32, "steps": 100, "robust": False, "device": "cpu", "log_every": 5}
    return TrainConfig(**{**values, **changes})


def npz(path: Path, *, shuffled: bool = False, few: int | None = None) -> str:
    """fashion-mini as a file of its own, with labels that say nothing, or with few training images."""
    parts = {split: load_set("fashion-mini", split) for split in ("train", "test")}
    order = torch.randperm(len(parts["train"].labels), generator=torch.Generator().manual_seed(0))
    labels = parts["train"].labels[order] if shuffled else parts["train"].labels
    np.savez(
        path,
        train_images=(parts["train"].images[:few] * 255).round().byte().numpy(),
        train_labels=labels[:few].numpy(),
        test_images=(parts["test"].images * 255).round().byte().numpy(),
        test_labels=parts["test"].labels.numpy(),
    )
    return str(path)


@pytest.mark.slow
def test_shuffled_labels_are_noticed_early_and_once(tmp_path, capsys):
    data = npz(tmp_path / "shuffled.npz", shuffled=True)
    train(brief(data=data, steps=80), tmp_path / "run")
    err = capsys.readouterr().err
    assert err.count("Warning: ") == 1
    (kept,) = Run(tmp_path / "run").warnings()
    assert kept.kind == "chance"
    assert f"Warning: {kept.words}" in err
    assert "stuck at chance after" in kept.words
    assert "--lr" in kept.words
    assert kept.step == 40  # five logged batches after a fifth of training


@pytest.mark.slow
def test_a_network_that_learns_is_left_in_peace(tmp_path, capsys):
    for name, robust in (("clean", False), ("attacked", True)):
        how = {"robust": robust, "eps": 0.1, "attack_steps": 1, "lr": 6e-3, "eps_ramp": 0.5}
        train(brief(steps=150, **how), tmp_path / name)
        assert Run(tmp_path / name).warnings() == ()
    assert "Warning" not in capsys.readouterr().err


@pytest.mark.slow
def test_images_learned_by_heart_are_noticed(tmp_path, capsys):
    data = npz(tmp_path / "few.npz", few=100)
    train(brief(data=data, steps=250, lr=3e-3), tmp_path / "run")
    (kept,) = Run(tmp_path / "run").warnings()
    assert (kept.kind, kept.step) == ("overlearned", 250)
    assert "of 100 training images are right" in kept.words
    assert "--shift" in kept.words
    assert kept.words in capsys.readouterr().err


@pytest.mark.slow
def test_the_warning_changes_no_weights_and_comes_once_for_a_resumed_run(tmp_path, capsys):
    data = npz(tmp_path / "shuffled.npz", shuffled=True)
    loud = train(brief(data=data, steps=40), tmp_path / "loud")
    quiet = train(brief(data=data, steps=40), tmp_path / "quiet", warn=False)
    for name, tensor in loud.state_dict().items():
        assert torch.equal(tensor, quiet.state_dict()[name]), name
    assert not (tmp_path / "quiet" / "warnings.jsonl").exists()
    capsys.readouterr()
    resume(tmp_path / "loud", steps=80)
    assert "stuck" not in capsys.readouterr().err
    assert [each.kind for each in Run(tmp_path / "loud").warnings()] == ["chance"]


@pytest.mark.parametrize(
    ("rights", "warned"),
    [
        ([20] * 10, 60),  # 10 and 20 ... 60: the first fifth does not count
        ([20] * 5 + [60] * 5, None),  # it has just begun, though all five together are still at chance
        ([60] * 10, None),
        ([60] * 5 + [20] * 5, 100),  # it has forgotten all that it knew
    ],
)
def test_when_chance_is_said(rights, warned):
    """Of 100 steps each tenth is logged, with 64 images of three classes."""
    rule = warn.ChanceRule(1 / 3)
    shown = [rule.judged(place / 10, float(right), float(right), 64) for place, right in enumerate(rights, 1)]
    said = [10 * place for place, each in enumerate(shown, 1) if each is not None]
    assert said[:1] == ([] if warned is None else [warned])


def test_clean_images_tell_a_beaten_network_from_one_that_learns_nothing():
    rule = warn.ChanceRule(0.1)
    shown = [rule.judged(place / 10, 2.0, 50.0, 64) for place in range(1, 11)]
    assert shown[:-1] == [None] * 9  # it may yet withstand the attack
    assert shown[-1] == warn.Shown("attack", 2 / 64, 50 / 64, 320)


def test_stored_trainings_are_above_chance_in_every_window():
    for path, largest in ((STORED / "mnist-sda-metrics.jsonl", 0.1124), (STORED / "smallnorb-metrics.jsonl", 0.2)):
        right = [json.loads(line)["accuracy"] * 128 for line in path.read_text().splitlines()]
        assert len(right) > 10
        for place in range(len(right) - warn.BATCHES + 1):
            assert warn.above_chance(sum(right[place : place + warn.BATCHES]), warn.BATCHES * 128, largest)


def test_stored_figures_of_networks_that_ship_are_not_overlearned():
    for line in (STORED / "overfitting.jsonl").read_text().splitlines():
        row = json.loads(line)
        assert not warn.overlearned(row["train"]["accuracy"], row["test"]["accuracy"], row["test"]["images"])
    assert warn.overlearned(0.9, 0.6, 256)
    assert not warn.overlearned(0.9, 0.6, 20)  # chance may be such
    assert not warn.overlearned(1.0, 0.85, 256)


def test_one_answer_for_all_is_seldom_above_chance():
    rng = np.random.default_rng(0)
    for images, largest in ((160, 0.1), (640, 0.5), (320, 0.9)):
        right = rng.binomial(images, largest, 20_000).tolist()
        share = np.mean([warn.above_chance(each, images, largest) for each in right])
        assert share < 0.005


def test_what_is_measured_at_the_end_is_cheap():
    assert warn.affordable(brief(steps=1), 1, 32) < warn.LEAST
    long = TrainConfig(attack_steps=10)
    assert warn.affordable(long, 1500, 128) == warn.MEASURED
    passes = 2 * warn.affordable(long, 40, 128) * (1 + 2 * 21)
    assert passes <= 0.05 * 40 * 128 * 11


def test_warnings_after_the_checkpoint_and_half_lines_are_forgotten(tmp_path):
    for step in (10, 20):
        add_warning(tmp_path, TrainingWarning(step, "chance", f"at {step}"))
    with (tmp_path / "warnings.jsonl").open("a") as file:
        file.write('{"step": 30, "ki')
    assert [each.step for each in read_warnings(tmp_path)] == [10, 20]
    forget_warnings_after(tmp_path, 10)
    assert [each.step for each in read_warnings(tmp_path)] == [10]
