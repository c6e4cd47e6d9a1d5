"""Our networks, unchanged, inside other people's attack libraries."""

import warnings

import pytest
import torch

import gammacaps
from gammacaps.attacks import pgd


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    model = gammacaps.create("small", filters=8, primary_types=2, hidden=(6,), decoder=()).eval()
    images = torch.rand(12, 1, 28, 28)
    with torch.no_grad():
        return model, images, model(images).argmax(1)


def kept(model, images, labels):
    with torch.no_grad():
        return int((model(images).argmax(1) == labels).sum())


def test_foolbox(network):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own making
        foolbox = pytest.importorskip("foolbox")
    model, images, labels = network
    outside = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    attack = foolbox.attacks.LinfPGD(abs_stepsize=0.05, steps=10)
    _, attacked, broken = attack(outside, images, labels, epsilons=0.3)
    assert (attacked - images).abs().max() <= 0.3 + 1e-6
    assert kept(model, attacked, labels) == len(images) - int(broken.sum())
    ours = pgd(model, images, labels, eps=0.3, step=0.05, steps=10)
    assert kept(model, ours, labels) <= kept(model, attacked, labels) < len(images)


def test_pyautoattack(network):
    auto = pytest.importorskip("pyautoattack")
    model, images, labels = network
    attack = auto.AutoAttack(model, eps=0.3, seed=0, version="custom", attacks=["apgd-ce", "fab"])
    attack.apgd.n_restarts = attack.fab.n_restarts = 1
    attack.apgd.n_iter = attack.fab.n_iter = 10
    attacked, answers = attack.run_standard_evaluation(images, labels)
    assert kept(model, attacked, labels) == int((answers == labels).sum()) < len(images)
