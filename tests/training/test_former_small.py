"""Runs of before the deep encoder, whose preset `small` was another network, go on with the network that they have."""

import json

import pytest
import torch
from former_small import FORMER_SMALL

import gammacaps
from gammacaps.errors import InputError
from gammacaps.models.folder import CONFIG, read_tensors
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.checkpoint import CHECKPOINT
from gammacaps.training.train import resume, train

TINY = {**FORMER_SMALL, "filters": 4, "primary_types": 2, "hidden": [3], "decoder": []}
CONFIGURATION = TrainConfig(
    model=tuple(f"{name}={value}" for name, value in TINY.items()), steps=4, batch=8, robust=False, device="cpu"
)


def former_run(folder, *, checkpoint=True):
    """The folder of a run that was stopped after 2 of its 4 steps, as an older version has written it."""
    train(CONFIGURATION, folder, until=2)
    stored = json.loads((folder / CONFIG).read_text())
    stored["train"]["model"] = []  # what was said by --model above was the preset itself
    for name in ("depth", "activation"):
        del stored["model"][name]
    (folder / CONFIG).write_text(json.dumps(stored))
    (folder / "model.safetensors").unlink(missing_ok=True)
    if not checkpoint:
        (folder / CHECKPOINT).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [True, False], ids=["stopped", "killed before its first checkpoint"])
def test_it_goes_on_with_its_own_network_to_the_very_same_weights(tmp_path, checkpoint):
    train(CONFIGURATION, tmp_path / "unbroken")
    former_run(tmp_path / "former", checkpoint=checkpoint)
    model = resume(tmp_path / "former")
    assert model.config.encoder == "convolution"
    assert model.config.filters == 4
    unbroken, former = (read_tensors(tmp_path / run / "model.safetensors") for run in ("unbroken", "former"))
    assert all(torch.equal(tensor, former[name]) for name, tensor in unbroken.items())
    assert gammacaps.load(tmp_path / "former").config == model.config


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_shape": [1, 20, 20]}, r"takes images of shape \(1, 20, 20\) in 10 classes, but fashion-mini has"),
        ({"encoder": "convolutions"}, "config.json: encoder must be one of 'convolution', 'residual', 'deep'"),
        ({"filters": 5}, "'encoder.0.weight' has the shape"),
    ],
    ids=["another size", "no encoder", "another network than its checkpoint's"],
)
def test_what_does_not_fit_is_said(tmp_path, changes, words):
    former_run(tmp_path / "former")
    path = tmp_path / "former" / CONFIG
    stored = json.loads(path.read_text())
    stored["model"].update(changes)
    path.write_text(json.dumps(stored))
    with pytest.raises(InputError, match=words):
        resume(tmp_path / "former")
