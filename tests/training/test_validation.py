"""Images held back from training: which they are, what is measured on them, and that the best weights are kept."""

import json

import pytest
import torch
from safetensors.torch import load_file

import gammacaps
from gammacaps.cli import main
from gammacaps.data import DataSet, StoredImages, StoredSet, load_set
from gammacaps.distributed.processes import ALONE
from gammacaps.errors import InputError
from gammacaps.models import Model
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training import train as training
from gammacaps.training import validation
from gammacaps.training.checkpoint import CHECKPOINT, best_of
from gammacaps.training.held_back import held_back_places, split_off
from gammacaps.training.train import resume, train
from gammacaps.training.validation import share_right

TINY = ("filters=4", "primary_types=2", "hidden=[3]", "decoder=[]")


def tiny(**changes) -> TrainConfig:
    values = {"model": TINY, "batch": 16, "steps": 7, "eps": 0.1, "attack_steps": 2, "device": "cpu", "log_every": 5}
    return TrainConfig(**{**values, "validate": 30, "validate_every": 2, **changes})


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def part(tensors, name):
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}


def assert_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("count", [1, 10, 25, 70])
def test_held_back_images_are_balanced_over_the_classes_and_drawn_by_the_seed(count):
    labels = torch.tensor([0] * 40 + [1] * 60 + [3] * 50)[torch.randperm(150)]
    places = held_back_places(labels, count, 5)
    assert len(set(places.tolist())) == count
    shares = labels[places].bincount(minlength=4)
    assert shares[2] == 0
    full = [20, 30, 0, 25]  # half of each class
    even = [n for n, most in zip(shares.tolist(), full, strict=True) if n < most]
    assert max(even, default=0) - min(even, default=0) <= 1
    assert (shares <= torch.tensor(full)).all()
    assert torch.equal(places, held_back_places(labels, count, 5))
    assert not torch.equal(places, held_back_places(labels, count, 6))


def test_more_than_half_of_the_images_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"validate holds back 1,001 of 2,000 images, .* give at most 1,000\."):
        train(tiny(validate=1001), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("stored", [False, True])
def test_each_image_is_either_trained_on_or_held_back(stored):
    pixels, labels = torch.arange(20, dtype=torch.uint8).view(20, 1, 1, 1), torch.arange(20) % 2
    named = (labels, ("a", "b"), "made up", "here")
    whole = StoredSet(StoredImages(pixels), *named) if stored else DataSet(pixels / 255, *named)
    trained, held = split_off(whole, TrainConfig(validate=7))
    assert type(trained) is type(held) is type(whole)
    numbers = [(255 * data.images[torch.arange(len(data.labels))]).round().long().flatten() for data in (trained, held)]
    assert [len(n) for n in numbers] == [13, 7]
    assert sorted(torch.cat(numbers).tolist()) == list(range(20))
    for data, number in zip((trained, held), numbers, strict=True):
        assert torch.equal(data.labels, number % 2)
    assert split_off(whole, TrainConfig()) == (whole, None)


def test_images_to_choose_by_can_come_from_another_set():
    whole = load_set("fashion-mini", "train")
    config = TrainConfig(data="mine.npz", validate=30, validate_on="fashion-mini")
    trained, held = split_off(whole, config)
    assert trained is whole
    assert config.held_back() == 0
    test = load_set("fashion-mini", "test")
    assert held.labels.bincount(minlength=10).tolist() == [3] * 10
    found = (held.images[:, None] == test.images[None]).flatten(2).all(dim=2)
    assert torch.equal(test.labels[found.float().argmax(dim=1)], held.labels)
    assert found.any(dim=1).all()


def test_images_to_choose_by_are_of_the_same_kind_and_their_number_is_given():
    other = DataSet(torch.zeros(20, 3, 8, 8), torch.arange(20) % 2, ("a", "b"), "made up", "here")
    with pytest.raises(InputError, match="fashion-mini has other classes or channels than made up"):
        split_off(other, TrainConfig(data="mine.npz", validate=4, validate_on="fashion-mini"))
    with pytest.raises(InputError, match="give validate as well"):
        TrainConfig(validate_on="fashion-mini")
    with pytest.raises(InputError, match=r"validate_on mnist is the set that is trained on, .*: name another set"):
        TrainConfig(data="mnist", validate=3000, validate_on="mnist")


class Plane(Model):
    """Two classes on the two sides of a plane, from which an attack's worst is known."""

    image_shape, classes = (1, 3, 3), 2

    def __init__(self) -> None:
        super().__init__()
        self.way = torch.nn.Parameter(torch.randn(9))

    def forward(self, images):
        height = (images - 0.5).flatten(1) @ self.way
        return torch.stack([-height, height], dim=1)


@pytest.mark.parametrize("loss", ["margin", "ce"])
def test_the_worst_case_of_two_sides_of_a_plane_is_their_distance(loss):
    model, eps = Plane(), 0.07
    images = 0.2 + 0.6 * torch.rand(101, 1, 3, 3)
    height = ((images - 0.5).flatten(1) @ model.way).detach()
    labels = (height > 0).long()
    labels[:9] = 1 - labels[:9]  # wrong from the start
    data = DataSet(images, labels, ("below", "above"), "made up", "here")
    config = TrainConfig(eps=eps, attack_loss=loss, batch=40)
    right = height.abs() > eps * model.way.abs().sum()
    right[:9] = False
    assert 0.1 < right.float().mean() < 0.8
    assert share_right(config, model, data, torch.device("cpu"), ALONE) == pytest.approx(int(right.sum()) / 101)
    clean = TrainConfig(robust=False, batch=40)
    assert share_right(clean, model, data, torch.device("cpu"), ALONE) == pytest.approx(92 / 101)
    assert next(model.parameters()).requires_grad


@pytest.mark.slow
def test_the_best_weights_are_kept_and_what_is_measured_moves_no_weight(tmp_path, monkeypatch, capsys):
    measured, seen = iter([0.3, 0.7, 0.7, 0.6]), []
    monkeypatch.setattr(validation, "share_right", lambda *given: next(measured))
    own = training.class_sets
    monkeypatch.setattr(training, "class_sets", lambda model, data: seen.append(len(data.labels)) or own(model, data))
    model = train(tiny(), tmp_path / "run")
    assert seen == [2000 - 30]  # class sets are of the images that are trained on
    lines = [(row["step"], row.get("validation")) for row in rows(tmp_path / "run")]
    assert lines == [(2, 0.3), (4, 0.7), (5, None), (6, 0.7), (7, 0.6)]
    assert "60.0% of held-back images" in capsys.readouterr().err
    assert best_of(tmp_path / "run") == (4, 0.7)

    monkeypatch.undo()
    train(tiny(validate_every=1000), tmp_path / "fourth", until=4)
    kept = load_file(tmp_path / "run" / "model.safetensors")
    fourth = load_file(tmp_path / "fourth" / CHECKPOINT)
    assert_equal(kept, part(fourth, "average"))
    assert not part(fourth, "best")
    assert_equal(load_file(tmp_path / "fourth" / "model.safetensors"), part(fourth, "average"))
    assert_equal(dict(model.state_dict()), kept)
    end = load_file(tmp_path / "run" / CHECKPOINT)
    assert_equal(part(end, "best"), kept)
    assert not torch.equal(part(end, "average")["routed.0.weight"], kept["routed.0.weight"])

    resume(tmp_path / "fourth")
    other = load_file(tmp_path / "fourth" / CHECKPOINT)
    for name in ("model", "average", "adam"):
        assert_equal(part(end, name), part(other, name))


@pytest.mark.slow
def test_a_resumed_run_keeps_what_an_unbroken_one_keeps_with_all_options(tmp_path):
    more = {"turn": 10.0, "zoom": 0.1, "shift": 1, "brightness": 0.1, "contrast": 0.2, "smoothing": 0.1}
    config = tiny(weight_decay=0.1, weight_perturbation=0.01, **more)
    train(config, tmp_path / "unbroken")
    train(config, tmp_path / "broken", until=1)
    assert best_of(tmp_path / "broken") is None
    resume(tmp_path / "broken", until=5)
    assert best_of(tmp_path / "broken") is not None
    resume(tmp_path / "broken")
    for name in ("model.safetensors", CHECKPOINT):
        assert_equal(load_file(tmp_path / "broken" / name), load_file(tmp_path / "unbroken" / name))
    assert best_of(tmp_path / "broken") == best_of(tmp_path / "unbroken")
    found = [
        {row["step"]: row["validation"] for row in rows(tmp_path / name) if "validation" in row}
        for name in ("broken", "unbroken")
    ]
    assert found[0] == found[1]
    assert list(found[0]) == [2, 4, 6, 7]
    step, right = best_of(tmp_path / "broken")
    assert right == max(found[0].values()) == found[0][step]
    held = split_off(load_set("fashion-mini", "train"), config)[1]
    again = share_right(config, gammacaps.load(tmp_path / "broken"), held, torch.device("cpu"), ALONE)
    assert again == right


@pytest.mark.slow
def test_train_says_which_step_s_weights_it_kept(tmp_path, capsys):
    words = ["train", "--model", *TINY, "--batch", "8", "--steps", "3", "--no-robust", "--device", "cpu"]
    words += ["--validate", "20", "--validate-every", "2"]
    main([*words, "--out", str(tmp_path / "run")])
    step, right = best_of(tmp_path / "run")
    lines = capsys.readouterr().out.splitlines()
    said = f"Kept the weights of step {step}, with which {100 * right:.1f}% of the held-back images are right."
    assert lines[0] == said
    assert lines[1].startswith("Saved in")
    main([*words, "--json", "--out", str(tmp_path / "json")])
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "run": str(tmp_path / "json"),
        "kept_step": step,
        "validation": right,
    }
