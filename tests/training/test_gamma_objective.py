"""The gamma objective: the sets that capsules are given, the term, and what training keeps and logs of it."""

import itertools
import json

import numpy as np
import pytest
import torch

import gammacaps
from gammacaps.data import DataSet, load_set
from gammacaps.errors import InputError
from gammacaps.metrics import usefulness
from gammacaps.models import Parse
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.class_sets import _joined, class_means, class_sets, natural_sets
from gammacaps.training.gamma_objective import GammaObjective, set_counts, set_entropy
from gammacaps.training.new_model import new_model
from gammacaps.training.starts import draw_noise
from gammacaps.training.step import Objective
from gammacaps.training.train import resume, train

TINY = {"model": ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]"), "batch": 12, "eps": 0.05}


def tiny(**changes):
    given = {"steps": 3, "attack_steps": 1, "log_every": 1, "checkpoint_every": 1, "device": "cpu", **TINY}
    return TrainConfig(**{**given, **changes})


def told_apart(sets):
    return {(a, b) for a, b in itertools.combinations(range(sets.shape[1]), 2) if (sets[:, a] != sets[:, b]).any()}


@pytest.mark.parametrize(("count", "different"), [(16, 16), (32, 30)])
def test_the_sets_of_clothes_differ_and_tell_all_classes_apart(count, different):
    data = load_set("fashion-mini", "train")
    sets = natural_sets(class_means(data), count)
    assert len({tuple(row) for row in sets.tolist()}) == different
    assert len(told_apart(sets)) == 45
    assert not sets.all(1).any()
    assert sets.any(1).all()
    named = [{data.class_names[k] for k in row.nonzero().squeeze(1).tolist()} for row in sets]
    assert {"Pullover", "Coat", "Shirt"} in named  # what looks alike
    assert {"T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Shirt"} in named  # all clothes


@pytest.mark.parametrize("classes", [2, 3, 5, 60])
def test_sets_of_any_number_of_classes(classes):
    means = torch.randn(classes, 9, generator=torch.Generator().manual_seed(classes), dtype=torch.float64)
    sets = natural_sets(means, 16)
    assert sets.shape == (16, classes)
    assert len(told_apart(sets)) == classes * (classes - 1) // 2
    assert len({tuple(row) for row in sets.tolist()}) >= min(16, 2 * classes - 2)
    assert not sets.all(1).any()
    assert sets.any(1).all()


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 32])
def test_a_thousand_classes_are_told_apart_by_few_capsules(count):
    means = torch.randn(1000, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    assert len({tuple(code) for code in natural_sets(means, count).T.tolist()}) == 1000


def test_classes_without_images_and_alike_ones_get_sets_too():
    images = torch.zeros(4, 1, 5, 5)
    data = DataSet(images, torch.tensor([0, 0, 2, 2]), ("a", "b", "c"), "three", "three")
    assert natural_sets(class_means(data), 4).shape == (4, 3)


def test_groups_join_the_nearest_first():
    points = torch.tensor([[0.0], [10.0], [1.0], [11.5]], dtype=torch.float64)
    order, groups = _joined(torch.cdist(points, points))
    assert order == [0, 2, 1, 3]
    assert groups == [{0, 2}, {1, 3}, {0, 1, 2, 3}]


def test_the_term_is_the_cross_entropy_and_its_gradient_is_right():
    generator = torch.Generator().manual_seed(0)
    lengths = torch.rand(5, 3, generator=generator, dtype=torch.float64).clamp(0.05, 0.95).requires_grad_()
    speaks = torch.rand(5, 3, generator=generator) < 0.5
    a, t = lengths.detach().numpy(), speaks.numpy()
    assert set_entropy(lengths, speaks).item() == pytest.approx(-np.where(t, np.log(a), np.log(1 - a)).mean())
    assert torch.autograd.gradcheck(lambda x: set_entropy(x, speaks), lengths)


def test_capsules_of_length_0_and_1_have_a_finite_term_and_gradient():
    lengths = torch.tensor([[0.0, 1.0, 0.0, 1.0]], requires_grad=True)
    term = set_entropy(lengths, torch.tensor([[True, False, False, True]]))
    term.backward()
    assert term.isfinite()
    assert lengths.grad.isfinite().all()


def test_the_term_of_a_batch_is_that_of_its_parts():
    objective = GammaObjective({"hidden 1": ((0,), (1, 2))}, 3)
    lengths, labels = torch.rand(6, 2), torch.tensor([0, 1, 2, 2, 1, 0])

    def parse(part):
        empty = torch.zeros(len(lengths[part]), 3)
        return Parse(("primary", "hidden 1", "class"), (), (empty, lengths[part], empty), (), (), empty)

    whole, active = objective(parse(slice(6)), labels)
    (first, early), (second, late) = (objective(parse(p), labels[p]) for p in (slice(2), slice(2, 6)))
    torch.testing.assert_close(whole, first * 2 / 6 + second * 4 / 6)
    torch.testing.assert_close(active, early * 2 / 6 + late * 4 / 6)


def test_counts_say_what_capsules_do():
    # Always on, dead, and two that speak for the first class; shares of all images, classes of 3/4 and 1/4.
    active = torch.tensor([[0.75, 0.0, 0.75, 0.6], [0.25, 0.0, 0.0, 0.0]])
    assert set_counts(active) == {"always_on": 1, "dead": 1, "class_sets": 1}


def test_capsules_that_follow_their_sets_are_as_useful_as_can_be():
    labels = torch.arange(10).repeat(20)
    sets = natural_sets(class_means(load_set("fashion-mini", "train")), 16)
    value, classes = usefulness(sets[:, labels].T, labels, 10)
    assert (classes == sets).all()
    size = sets.sum(1).double()
    torch.testing.assert_close(value, (10 - size) * size / 10)


@pytest.mark.slow
def test_training_lowers_the_term_logs_it_and_keeps_the_sets(tmp_path):
    run = tmp_path / "run"
    train(tiny(steps=25, robust=False, gamma=1.0, lr=0.01), run)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["gamma"] < rows[0]["gamma"]
    assert {"always_on", "dead", "class_sets"} <= set(rows[0])
    kept = Run(run).config.class_sets
    assert kept == class_sets(gammacaps.load(run), load_set("fashion-mini", "train"))
    assert len(kept["hidden 1"]) == 6


@pytest.mark.parametrize(
    ("preset", "weight"), [("small", 0.3), ("deep", 0.3), ("residual", 0.3), ("paper", 0.0), ("cnn", 0.0)]
)
def test_who_learns_it_without_being_asked(preset, weight):
    assert TrainConfig(preset=preset).gamma_weight() == weight
    assert TrainConfig(preset=preset, gamma=0.0).gamma_weight() == 0


def test_without_weight_nothing_is_kept_or_logged(tmp_path):
    train(tiny(gamma=0.0, steps=1), tmp_path / "run")
    assert "class_sets" not in json.loads((tmp_path / "run" / "config.json").read_text())
    assert "gamma" not in json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])


@pytest.mark.slow
def test_a_resumed_run_ends_at_the_weights_of_an_unbroken_one(tmp_path):
    train(tiny(steps=4, gamma=0.5), tmp_path / "whole")
    train(tiny(steps=4, gamma=0.5), tmp_path / "broken", until=2)
    resume(tmp_path / "broken")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_a_run_of_before_goes_on_without_it(tmp_path):
    run = tmp_path / "run"
    train(tiny(steps=4, gamma=0.0), run, until=2)
    config = json.loads((run / "config.json").read_text())
    del config["train"]["gamma"]  # as older versions wrote it
    (run / "config.json").write_text(json.dumps(config))
    resume(run)
    train(tiny(steps=4, gamma=0.0), tmp_path / "whole")
    assert (run / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("accumulate", [2, 3])
def test_parts_of_a_batch_have_the_gradient_of_the_whole(accumulate):
    data = load_set("fashion-mini", "train")
    config = tiny(robust=False, gamma=1.0)
    model = new_model(config, data).double()
    objective = Objective(config, model, class_sets(model, data))
    images, labels = data.images[:12].double(), data.labels[:12]

    def gradient(parts):
        model.zero_grad()
        for part in parts:
            own = images[part], labels[part]
            values, _ = objective(*own, draw_noise(config, own[0], 0, len(own[0])), 0, 0.0)
            (values["loss"] * len(own[0]) / 12).backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    size = 12 // accumulate
    whole, split = gradient([slice(12)]), gradient([slice(k, k + size) for k in range(0, 12, size)])
    for one, other in zip(whole, split, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_unbalanced_classes_count_by_their_images():
    # The definitions' expectation is over the data: each image counts once, however rare its class.
    lengths, labels = torch.full((10, 1), 0.2), torch.tensor([0] * 9 + [1])
    objective = GammaObjective({"hidden 1": ((1,),)}, 2)
    empty = torch.zeros(10, 2)
    parse = Parse(("primary", "hidden 1", "class"), (), (empty, lengths, empty), (), (), empty)
    term, active = objective(parse, labels)
    assert term.item() == pytest.approx(-(9 * np.log(0.8) + np.log(0.2)) / 10, rel=1e-5)
    assert active.sum() == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"gamma": -1.0}, "gamma must be 0 or more"), ({"gamma": 1.0, "preset": "cnn", "model": ()}, "a cnn has none")],
)
def test_what_makes_no_sense_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        tiny(**changes)


def test_two_hidden_layers_have_sets_of_their_own(tmp_path):
    model = ("filters=8", "primary_types=2", "hidden=[6, 4]", "decoder=[]")
    train(tiny(model=model, steps=1), tmp_path / "run")
    kept = Run(tmp_path / "run").config.class_sets
    assert {layer: len(sets) for layer, sets in kept.items()} == {"hidden 1": 6, "hidden 2": 4}
