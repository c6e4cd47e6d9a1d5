"""Training with convolutions in half precision: near to float32, and as repeatable."""

import dataclasses

import pytest
import torch
from safetensors.torch import load_file

from gammacaps.cli import main
from gammacaps.data import load_set
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.new_model import new_model
from gammacaps.training.starts import draw_noise
from gammacaps.training.step import Objective
from gammacaps.training.train import resume, train

TINY = TrainConfig(
    model=("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]"),
    eps=0.1,
    attack_steps=1,
    steps=4,
    batch=12,
    checkpoint_every=1,
    device="cpu",
)
LOW = dataclasses.replace(TINY, precision="bfloat16")


def losses(config, images, labels):
    """Those of one network's first step on the images as they are, and its convolutions' gradient."""
    torch.manual_seed(0)
    data = load_set("fashion-mini", "train")
    model = new_model(config, data).train()
    objective = Objective(config, model)
    noise = draw_noise(config, images, 0, len(images))
    values, _ = objective(images, labels, noise, 0, 1.0, attacked=images)
    values["loss"].backward()
    weight = model.primary.convolution.weight
    assert weight.dtype == weight.grad.dtype == torch.float32
    return values["loss"].item(), weight.grad.clone()


def test_half_precision_rounds_a_step_and_does_not_change_it():
    data = load_set("fashion-mini", "train")
    images, labels = data.images[:12], data.labels[:12]
    loss, gradient = losses(TINY, images, labels)
    low_loss, low_gradient = losses(LOW, images, labels)
    assert low_loss == pytest.approx(loss, rel=0.02)
    assert 1e-5 < (low_gradient - gradient).norm() / gradient.norm() < 0.1  # rounded, and by no more than that
    full = dataclasses.replace(TINY, precision="float32")  # which a CPU has by itself
    assert losses(full, images, labels)[0] == loss


@pytest.mark.slow
def test_a_resumed_run_in_half_precision_ends_at_the_weights_of_an_unbroken_one(tmp_path):
    train(LOW, tmp_path / "whole")
    train(LOW, tmp_path / "broken", until=2)
    resume(tmp_path / "broken")
    whole, broken = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "broken"))
    assert all(torch.equal(whole[name], broken[name]) for name in whole)
    assert all(weight.dtype == torch.float32 for weight in whole.values())
    assert Run(tmp_path / "whole").config.train == LOW


def test_an_unknown_precision_is_refused(capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--precision", "float8", "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert "bfloat16" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
