"""Weights moved uphill: where they go, that they come back, and that a step learns from the gradient there."""

import pytest
import torch
from torch import nn

from gammacaps.data import load_set
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.learner import new_learner
from gammacaps.training.losses import classification_loss, reconstruction_loss
from gammacaps.training.new_model import new_model
from gammacaps.training.step import take_step
from gammacaps.training.weight_perturbation import perturbed_weights

TINY = ("filters=4", "primary_types=2", "hidden=[3]", "decoder=[5]")


def test_inside_each_weight_has_moved_along_its_gradient_by_its_share_and_after_it_none_has():
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3), nn.Linear(3, 2))
    first, second, third = (layer.weight for layer in model)
    (model[1](model[0](torch.rand(6, 5))).square().sum() + 0 * second.sum()).backward()
    second.grad.zero_()  # nowhere is up
    before = [p.detach().clone() for p in model.parameters()]
    with perturbed_weights(model, 0.3):
        way = first.detach() - before[0]
        assert way.norm().item() == pytest.approx(0.3 * before[0].norm().item(), rel=1e-5)
        cosine = (way * first.grad).sum() / way.norm() / first.grad.norm()
        assert cosine.item() == pytest.approx(1, abs=1e-5)
        inside = [p.detach().clone() for p in model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(inside[1:], before[1:], strict=True))
    assert third.grad is None
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


def test_weights_come_back_after_an_error_too():
    layer = nn.Linear(3, 2)
    layer(torch.rand(4, 3)).sum().backward()
    before = layer.weight.detach().clone()
    with pytest.raises(RuntimeError, match="within"), perturbed_weights(layer, 0.5):
        raise RuntimeError("within")
    assert torch.equal(layer.weight, before)


@pytest.mark.slow
@pytest.mark.parametrize("robust", [False, True])
def test_a_step_learns_by_the_gradient_at_the_moved_weights(robust):
    """Against both passes written out, in float64; the first step of Adam is the rate times the gradient's sign."""
    config = TrainConfig(
        model=TINY, robust=robust, eps=0.1, attack_steps=2, gamma=0.0, schedule="constant", weight_perturbation=0.05
    )
    data = load_set("fashion-mini", "train")
    images, labels = data.images[:6].double(), data.labels[:6]
    model = new_model(config, data).double()
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses, _, attacked = take_step(config, new_learner(config, model, torch.device("cpu")), images, labels, 1.0)

    other = new_model(config, data).double()

    def gradients():
        parse = other.parse(attacked)
        loss = classification_loss("margin", parse.scores, labels, 0)
        loss = loss + config.reconstruction * reconstruction_loss(other.reconstruct(parse, labels), images)
        return loss.item(), dict(zip(start, torch.autograd.grad(loss, list(other.parameters())), strict=True))

    here, first = gradients()
    assert losses["loss"].item() == pytest.approx(here)  # what is logged is of the weights as they are
    with torch.no_grad():
        for name, p in other.named_parameters():
            if not name.endswith("bias"):
                p += 0.05 * p.norm() * first[name] / first[name].norm()
    there, expected = gradients()
    assert there > here
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.grad, expected[name], rtol=1e-7, atol=1e-10)
        step = config.lr * expected[name] / (expected[name].abs() + 1e-8)
        torch.testing.assert_close(p.detach(), start[name] - step, rtol=1e-5, atol=1e-7)
