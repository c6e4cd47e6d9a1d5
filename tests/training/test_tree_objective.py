"""The tree objective: hidden capsules that speak for an image's class give their votes to that class."""

import json

import numpy as np
import pytest
import torch

from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.class_sets import class_sets
from gammacaps.training.new_model import new_model
from gammacaps.training.starts import draw_noise
from gammacaps.training.step import Objective
from gammacaps.training.train import resume, train
from gammacaps.training.tree_objective import parent_cross_entropy


def tiny(**changes):
    sizes = {"model": ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]"), "batch": 12}
    given = {"steps": 4, "attack_steps": 1, "eps": 0.05, "tree": 0.2, "log_every": 1, "device": "cpu", **sizes}
    return TrainConfig(**{**given, **changes})


def test_the_term_is_the_cross_entropy_of_the_parents_and_its_gradient_is_right():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 4, 3, generator=generator, dtype=torch.float64).requires_grad_()
    labels, speaks = torch.tensor([0, 2, 1, 1, 2]), torch.rand(5, 4, generator=generator) < 0.5
    c = logits.softmax(-1)
    expected = [-np.log(c[b, j, labels[b]].item()) for b in range(5) for j in range(4) if speaks[b, j]]
    assert parent_cross_entropy(c, labels, speaks).item() == pytest.approx(sum(expected) / 20)
    assert torch.autograd.gradcheck(lambda x: parent_cross_entropy(x.softmax(-1), labels, speaks), logits)


def test_a_tree_costs_nothing_and_a_coupling_of_0_is_finite_and_is_not_pulled():
    labels, speaks = torch.tensor([1]), torch.tensor([[True, True, False]])
    tree = torch.tensor([[[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]])
    assert parent_cross_entropy(tree, labels, speaks) == 0  # the third capsule speaks for others, and may choose them
    astray = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]], requires_grad=True)
    term = parent_cross_entropy(astray, labels, speaks)
    term.backward()
    assert term.isfinite()
    assert astray.grad.isfinite().all()
    assert astray.grad[0, 0].tolist() == [0, 0]
    assert astray.grad[0, 1, 1] < 0


@pytest.mark.parametrize("preset", ["small", "matrix"])
def test_parts_of_a_batch_have_the_gradient_of_the_whole(preset):
    data = load_set("fashion-mini", "train")
    few = tiny().model if preset == "small" else ("filters=4", "primary_types=2", "types=[2,2]")
    config = tiny(preset=preset, robust=False, gamma=1.0, model=few)
    model = new_model(config, data).double()
    objective = Objective(config, model, class_sets(model, data))
    images, labels = data.images[:12].double(), data.labels[:12]

    def gradient(parts):
        model.zero_grad()
        for part in parts:
            own = images[part], labels[part]
            values, _ = objective(*own, draw_noise(config, own[0], 0, len(own[0])), 0, 0.0)
            (values["loss"] * len(own[0]) / 12).backward()
            assert values["tree"] > 0
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    for one, other in zip(gradient([slice(12)]), gradient([slice(6), slice(6, 12)]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_training_lowers_it_and_a_resumed_run_ends_at_the_weights_of_an_unbroken_one(tmp_path):
    train(tiny(steps=25, robust=False, tree=1.0, lr=0.01, checkpoint_every=12), tmp_path / "whole")
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["tree"] < rows[0]["tree"]
    train(tiny(steps=25, robust=False, tree=1.0, lr=0.01, checkpoint_every=12), tmp_path / "broken", until=12)
    resume(tmp_path / "broken")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert weights[0] == weights[1]


def test_it_is_for_the_gamma_objective_and_off_unless_asked_for():
    assert TrainConfig().tree == 0
    with pytest.raises(InputError, match="give gamma as well"):
        TrainConfig(preset="paper", tree=0.1)
    assert TrainConfig(preset="paper", tree=0.1, gamma=0.3).tree == 0.1
