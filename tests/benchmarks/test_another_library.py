"""The other library's attacks count, and figures that promise too much are noticed."""

import json
import shutil
import warnings

import pytest
import torch

import gammacaps
from benchmarks.another_library import Logits, Options, measure, stands
from gammacaps.errors import InputError
from gammacaps.names import SHIPPED

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own making
    pytest.importorskip("foolbox")
FEW = Options(runs=(), images=20, steps=5, starts=1, device="cpu")


@pytest.mark.slow
def test_the_attack_breaks_what_can_be_broken():
    """At a radius of 0 all images that are right stand; at 0.5 every image can become the same grey one."""
    model = gammacaps.load("fashion-mini")
    images, labels = (part[:20] for part in gammacaps.load_data("fashion-mini"))
    with torch.no_grad():
        right = model(images).argmax(dim=1) == labels
        assert torch.equal(Logits(model)(images).argmax(dim=1), model(images).argmax(dim=1))
    assert torch.equal(stands(model, images, labels, 0.0, FEW), right)
    assert stands(model, images, labels, 0.5, FEW).sum() < right.sum() / 2


@pytest.mark.slow
def test_figures_that_promise_too_much_are_noticed(tmp_path):
    folder = shutil.copytree(SHIPPED / "fashion-mini", tmp_path / "own")
    assert not measure(str(folder), FEW)["below_the_card"]
    results = json.loads((folder / "results.json").read_text())
    for row in results["worst"]:
        row |= {"accuracy": 1.0, "interval": [0.999, 1.0]}
    (folder / "results.json").write_text(json.dumps(results))
    assert measure(str(folder), FEW)["below_the_card"]


def test_a_run_without_figures_gets_one_sentence(tmp_path):
    folder = shutil.copytree(SHIPPED / "fashion-mini", tmp_path / "bare")
    (folder / "results.json").unlink()
    with pytest.raises(InputError, match="has no figures at a radius of training: measure it with"):
        measure(str(folder), FEW)
