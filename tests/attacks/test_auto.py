"""The bridge to AutoAttack, against AutoAttack itself."""

import numpy as np
import pytest
import torch

from gammacaps.attacks import auto_attack
from gammacaps.attacks.auto import PARTS, why_not_auto
from gammacaps.errors import InputError

AutoAttack = pytest.importorskip("pyautoattack").AutoAttack


class Linear(torch.nn.Module):
    def __init__(self, classes, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.layer = torch.nn.Linear(25, classes)

    def forward(self, images):
        return self.layer(images.flatten(1)).tanh()


def examples(classes, count=24):
    torch.manual_seed(1)
    model, images = Linear(classes), torch.rand(count, 1, 5, 5)
    with torch.no_grad():
        return model, images, model(images).argmax(1)


@pytest.mark.slow
def test_part_after_part_equals_autoattack_itself():
    classes = 5  # fewer than AutoAttack's own 9 targets need
    model, images, labels = examples(classes)
    eps = 0.05
    whole = AutoAttack(model, eps=eps, seed=0)
    whole.apgd_targeted.n_target_classes = whole.fab.n_target_classes = classes - 1
    whole.square.n_queries = 100
    theirs, _ = whole.run_standard_evaluation(images, labels)
    stands = torch.ones(len(images), dtype=torch.bool)
    ours = images.clone()
    for part in PARTS:
        left = stands.nonzero().squeeze(1)
        ours[left] = auto_attack(model, images[left], labels[left], eps=eps, part=part, queries=100)
        with torch.no_grad():
            stands = model(ours).argmax(1) == labels
    with torch.no_grad():
        assert stands.equal(model(theirs).argmax(1) == labels)
    assert 0 < stands.sum() < len(images)
    assert (ours - images).abs().max() <= eps + 1e-6
    assert auto_attack(model, images, labels, eps=eps, queries=100).equal(ours)


def test_the_random_state_outside_is_left_alone_and_the_seed_decides():
    model, images, labels = examples(4)
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002, the state that AutoAttack touches
    expected = (torch.rand(1), np.random.rand())  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    first = auto_attack(model, images, labels, eps=0.05, part="apgd-ce", seed=3)
    assert (torch.rand(1), np.random.rand()) == expected  # noqa: NPY002
    assert first.equal(auto_attack(model, images, labels, eps=0.05, part="apgd-ce", seed=3))


@pytest.mark.parametrize(
    ("classes", "part"), [(2, "fab-t"), (2, "apgd-ce"), (3, "fab-t"), (2, "square"), (100, "apgd-t")]
)
def test_parts_run_at_other_class_counts(classes, part):
    model, images, labels = examples(classes, 6)
    attacked = auto_attack(model, images, labels, eps=0.4, part=part, queries=50)
    with torch.no_grad():
        assert (model(attacked).argmax(1) != labels).any()


def test_all_parts_run_that_so_few_classes_allow():
    model, images, labels = examples(3, 4)
    attacked = auto_attack(model, images, labels, eps=0.4, queries=50)
    with torch.no_grad():
        assert (model(attacked).argmax(1) != labels).any()


def test_what_can_t_run_says_why(monkeypatch):
    model, images, labels = examples(3, 2)
    with pytest.raises(InputError, match="apgd-t can't run: its loss needs 4 classes and the network has 3"):
        auto_attack(model, images, labels, eps=0.1, part="apgd-t")
    with pytest.raises(InputError, match="no part of AutoAttack 'apgd'"):
        why_not_auto("apgd", 10)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "gammacaps\\[attacks\\]".replace("\\", "") in (why_not_auto("square", 10) or "")
