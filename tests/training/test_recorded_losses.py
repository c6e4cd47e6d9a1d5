"""The replayed learning pass against the plain one: the same losses and gradients, step after step."""

import pytest
import torch

import gammacaps
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.learner import new_learner
from gammacaps.training.recorded_losses import RecordedLosses, recorded_losses
from gammacaps.training.sharing import Sharing
from gammacaps.training.step import Objective, take_step

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TINY = {
    "small": {"filters": 8, "primary_types": 2, "hidden": (3,), "decoder": (8,)},
    "matrix": {"filters": 4, "primary_types": 2, "types": (2, 2)},
    "cnn": {"filters": (2, 3), "width": 8},
}


def learning(preset, recorded, **changes):
    """Losses of three steps, and the weights after them."""
    torch.manual_seed(0)
    model = gammacaps.create(preset, classes=3, **TINY[preset]).to(DEVICE).train()
    config = TrainConfig(preset=preset, eps=0.1, attack_steps=2, batch=6, **changes)
    sets = {"hidden 1": ((0,), (1, 2), (2,))} if preset == "small" else None
    objective = Objective(config, model, sets).to(DEVICE)
    sharing = Sharing(objective, 6, recorded=RecordedLosses(objective, model) if recorded else None)
    learner = new_learner(config, model, DEVICE)
    losses = []
    for step in range(3):
        images, labels = torch.rand(6, 1, 28, 28, device=DEVICE), torch.arange(6, device=DEVICE) % 3
        values, accuracy, _ = take_step(config, learner, images, labels, step / 3, sharing)
        losses.append({**values, "accuracy": accuracy})
        learner.step += 1
    return losses, model.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("small", {}),
        ("small", {"trades": 2.0}),
        ("small", {"reconstruction": 0.0, "robust": False, "loss": "ce-log"}),
        ("matrix", {}),
        ("cnn", {"trades": 1.0}),
    ],
    ids=str,
)
def test_replayed_steps_learn_what_plain_ones_learn(preset, changes, monkeypatch):
    (ours, weights), (plain, right) = (learning(preset, recorded, **changes) for recorded in (True, False))
    tight = {"rtol": 1e-5, "atol": 1e-6} if DEVICE.type == "cpu" else {"rtol": 2e-2, "atol": 2e-2}
    for mine, own in zip(ours, plain, strict=True):
        assert mine.keys() == own.keys()
        for name in mine:
            torch.testing.assert_close(mine[name], own[name], **tight)
    for name in weights:
        torch.testing.assert_close(weights[name], right[name], **tight)


def test_only_on_a_gpu_and_where_nothing_speaks_against_it():
    model = gammacaps.create("cnn", **TINY["cnn"])
    objective = Objective(TrainConfig(preset="cnn"), model)
    assert recorded_losses(objective, model, torch.device("cpu")) is None
    assert recorded_losses(objective, model, torch.device("cuda")) is not None
    model.layers[0].register_forward_hook(lambda *_: None)
    assert recorded_losses(objective, model, torch.device("cuda")) is None
