import json
import resource
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import gammacaps
from gammacaps.errors import InputError
from gammacaps.models import PRESETS, to_config


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_a_saved_network_comes_back_the_same(tmp_path, preset):
    few = {"filters": 8, "primary_types": 2} if preset == "paper" else {}
    model = gammacaps.create(preset, classes=4, **few)
    gammacaps.save(model, tmp_path / "run")
    again = gammacaps.load(tmp_path / "run")
    assert to_config(again) == to_config(model)
    assert not again.training
    images = torch.rand(3, 1, 28, 28)
    assert torch.equal(again(images), model(images))
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["config.json", "model.safetensors"]


def test_half_precision_weights_load_as_float32(tmp_path):
    model = gammacaps.create("small")
    gammacaps.save(model.half(), tmp_path / "run")
    again = gammacaps.load(tmp_path / "run")
    assert all(p.dtype == torch.float32 for p in again.parameters())


@pytest.fixture
def stored(tmp_path):
    gammacaps.save(gammacaps.create("small"), tmp_path / "run")
    return tmp_path / "run"


def spoil_config(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def spoil_weights(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "config.json").unlink(), "is not a run's folder .there is no file config.json"),
        (lambda f: (f / "config.json").write_text("{"), "can't be read as JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "does not describe a network"),
        (lambda f: spoil_config(f, lambda c: c.update(format=99)), "is of format 99"),
        (lambda f: spoil_config(f, lambda c: c["model"].update(color=3)), "no field .* 'color'"),
        (lambda f: spoil_config(f, lambda c: c["model"].update(architecture="x")), "no architecture 'x'"),
        (lambda f: spoil_config(f, lambda c: c["model"].update(classes=7)), "has the shape .* but the network in"),
        (lambda f: (f / "model.safetensors").unlink(), "There is no file .*model.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"PK not a safetensors file"), "is broken"),
        (
            lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]),
            "is broken",
        ),
        (lambda f: spoil_weights(f, lambda t: t.pop("routed.0.bias")), "lacks the weights 'routed.0.bias'"),
        (lambda f: spoil_weights(f, lambda t: t.update(extra=torch.ones(2))), "does not have: extra"),
        (lambda f: spoil_weights(f, lambda t: t["routed.0.bias"].fill_(float("nan"))), "NaN or infinity"),
    ],
)
def test_a_broken_folder_gets_one_sentence(stored, spoil, words):
    spoil(stored)
    with pytest.raises(InputError, match=words):
        gammacaps.load(stored)


def test_a_missing_folder_and_an_existing_one(stored, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="There is no run folder '"):
        gammacaps.load(tmp_path / "nowhere")
    before = (stored / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match="exists already"):
        gammacaps.save(gammacaps.create("cnn"), stored)
    assert (stored / "model.safetensors").read_bytes() == before
    gammacaps.save(gammacaps.create("small", classes=3), stored, overwrite=True)
    assert gammacaps.load(stored).config.classes == 3
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    (other / "config.json").write_text('{"model": "of something else"}')
    monkeypatch.chdir(stored)
    for place in (other, Path(), tmp_path):  # another program's folder, the folder we stand in, one above it
        with pytest.raises(InputError, match="is not a run's folder"):
            gammacaps.save(gammacaps.create("cnn"), place, overwrite=True)
    assert (other / "thesis.txt").read_text() == "precious"
    assert gammacaps.load(stored).config.classes == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "run"]


def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InputError, match=r"can't be written \(No space left on device"):
        gammacaps.save(gammacaps.create("small"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_config_that_asks_for_too_much_is_refused_by_the_weights_header(stored):
    spoil_config(stored, lambda c: c["model"].update(hidden=[60_000], filters=4096))
    peak, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(InputError, match="has the shape"):
        gammacaps.load(stored)
    assert time.process_time() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 100 * 1024  # KiB
