"""A training that stops at a step to be looked at, and goes on as if it had not."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.checkpoint import step_of
from gammacaps.training.train import resume, train

CONFIG = TrainConfig(
    model=("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]"),
    eps=0.1,
    attack_steps=1,
    steps=5,
    batch=8,
    ema=0.9,
    device="cpu",
)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_stopping_on_the_way_changes_nothing(tmp_path):
    train(CONFIG, tmp_path / "whole")
    assert step_of(tmp_path / "broken") == 0
    train(CONFIG, tmp_path / "broken", until=2)
    assert step_of(tmp_path / "broken") == 2
    early = weights(tmp_path / "broken")
    resume(tmp_path / "broken", until=5)
    assert step_of(tmp_path / "broken") == 5
    resume(tmp_path / "broken", until=2, steps=9)  # it is further already: nothing to do
    assert step_of(tmp_path / "broken") == 5
    late, whole = weights(tmp_path / "broken"), weights(tmp_path / "whole")
    assert all(torch.equal(late[name], whole[name]) for name in whole)
    assert any(not torch.equal(early[name], late[name]) for name in whole)
