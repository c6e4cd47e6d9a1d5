"""Weight decay: what a step of AdamW takes off which weights."""

import pytest
import torch

from gammacaps.data import load_set
from gammacaps.models import create
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.learner import matrices, new_learner
from gammacaps.training.new_model import new_model
from gammacaps.training.step import take_step

CPU = torch.device("cpu")


@pytest.mark.slow
def test_weight_decay_takes_rate_times_decay_off_the_weights_and_off_no_bias():
    data, after = load_set("fashion-mini", "train"), {}
    for decay in (0.0, 2.0):
        config = TrainConfig(
            model=("filters=4", "primary_types=2", "hidden=[3]", "decoder=[5]"),
            robust=False,
            schedule="constant",
            lr=0.01,
            weight_decay=decay,
        )
        model = new_model(config, data)
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        learner = new_learner(config, model, CPU)
        take_step(config, learner, data.images[:8], data.labels[:8], 0.0)
        after[decay] = {name: p.detach() for name, p in model.named_parameters()}
    for name, plain in after[0.0].items():
        share = 0.0 if name.endswith("bias") else 0.01 * 2.0
        torch.testing.assert_close(after[2.0][name], plain - share * before[name], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("preset", ["small", "residual", "matrix", "cnn"])
def test_weights_are_those_that_multiply_and_each_parameter_is_optimized_once(preset):
    model = create(preset)
    names = {id(p): name for name, p in model.named_parameters()}
    weights = [names[id(p)] for p in matrices(model)]
    assert weights
    assert all(name.endswith("weight") for name in weights)
    assert not any("bias" in name or "beta" in name for name in weights)
    groups = new_learner(TrainConfig(weight_decay=0.1), model, CPU).optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    assert sorted(id(p) for group in groups for p in group["params"]) == sorted(names)
    assert sorted(names[id(p)] for p in groups[0]["params"]) == sorted(weights)
