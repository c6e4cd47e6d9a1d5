import json
import sys

import pytest
import torch

from benchmarks import overfitting
from gammacaps import load, load_data
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train


def trained(folder, **changes):
    config = TrainConfig(batch=8, steps=2, attack_steps=2, device="cpu", **changes)
    train(config, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("trades", [0.0, 1.0])
def test_without_room_the_attack_leaves_clean_accuracy_and_with_it_less(tmp_path, monkeypatch, capsys, trades):
    still = trained(tmp_path / "still", eps=0.0, trades=trades)
    monkeypatch.setattr(sys, "argv", ["overfitting", str(still), "--images", "500", "--device", "cpu"])
    overfitting.main()
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    model = load(still)
    images, labels = load_data("fashion-mini")
    with torch.no_grad():
        clean = (model(images).argmax(dim=1) == labels).float().mean().item()
    assert row["test"] | {"interval": None} == {"accuracy": pytest.approx(clean), "interval": None, "images": 500}
    wide = trained(tmp_path / "wide", eps=1.0, attack_step=1.0)
    options = overfitting.Options((str(wide),), images=100, device="cpu")
    assert all(overfitting.measure(str(wide), options)[split]["accuracy"] <= 0.2 for split in ("train", "test"))


def test_a_network_that_was_not_attacked_gets_one_sentence(tmp_path, monkeypatch):
    clean = trained(tmp_path / "clean", robust=False)
    monkeypatch.setattr(sys, "argv", ["overfitting", str(clean)])
    with pytest.raises(SystemExit, match="was trained on clean images: there is no attack to repeat"):
        overfitting.main()
