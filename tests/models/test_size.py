"""Networks that are too large are refused by their shapes, before anything is built."""

import resource
import time

import pytest
import torch

from gammacaps.errors import InputError
from gammacaps.models import create
from gammacaps.models.presets import ARCHITECTURES, PRESETS, shapes_of, to_config
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train

MOST = 2**31 - 1


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_shapes_are_those_of_the_network_and_leave_its_initial_weights_as_they_are(preset):
    torch.manual_seed(0)
    model = create(preset)
    assert shapes_of(to_config(model)) == {name: tensor.shape for name, tensor in model.state_dict().items()}
    torch.manual_seed(0)
    shapes_of(to_config(model))
    plain = ARCHITECTURES[model.architecture][0](model.config)
    for mine, its in zip(model.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.equal(mine, its)


def test_shapes_take_no_memory_and_no_time():
    values = {**to_config(create("small")), "hidden": [60000]}
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    shapes = shapes_of(values)
    assert shapes["routed.0.weight"][:2] == (200, 60000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB; built, it takes gigabytes
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("preset", "changes", "words"),
    [
        (
            "small",
            {"hidden": [100_000_000]},
            r"has 1,408,800,290,144 parameters and takes 5,635\.2 GB, but .* are free",
        ),
        ("paper", {"hidden": [MOST] * 3}, "too many weights to count"),
        ("residual", {"image_shape": [MOST] * 3}, "too many weights to count"),
        ("cnn", {"image_shape": [MOST] * 3}, "too many weights to count"),
        ("matrix", {"image_shape": [1, 2**20, 2**20]}, r"has 68,444 parameters and takes 725,670\.8 GB"),  # its fields
        ("small", {"filters": 10**30}, "filters must be at most 2,147,483,647, not a number of more than 18 digits"),
        ("small", {"hidden": [2] * 101}, "hidden names 101 layers: use at most 100"),
        ("small", {"iterations": 10**6}, "iterations must be at most 100, not 1000000"),
    ],
)
def test_a_network_that_fits_no_memory_is_one_sentence(preset, changes, words):
    with pytest.raises(InputError, match=words):
        create(preset, **changes)


def test_a_network_that_fits_memory_but_not_in_training_is_refused_before_a_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("gammacaps.models.presets.free_memory", lambda: 3_000_000)  # the small one is of 2.1 MB
    with pytest.raises(InputError, match=r"parameters and needs for training another \d+\.\d GB"):
        train(TrainConfig(steps=1, device="cpu"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
