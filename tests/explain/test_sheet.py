"""The sheet of all capsules: every one is on it, named by what it serves."""

import io

import pytest
import torch
from PIL import Image

import gammacaps
from gammacaps.explain.examples import Served
from gammacaps.explain.sheet import name_of, sheet, wrapped


@pytest.mark.slow
def test_all_hidden_and_class_capsules_are_on_the_sheet():
    model, (images, labels) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    names = [f"class {k}" for k in range(10)]
    made = sheet(model, images[:60], labels[:60], class_names=names, starts=1, steps=1)
    assert {layer: len(capsules) for layer, capsules in made.layers.items()} == {"hidden 1": 16, "class": 10}
    assert [name for _, name, _ in made.layers["class"]] == names
    page = Image.open(io.BytesIO(made.png()))
    rows = 4  # of 8 pictures, each of 112 pixels
    assert page.width > 8 * 112
    assert page.height > rows * (112 + 3 * 12)


def test_capsules_are_named_by_their_classes():
    classes, names = [0, 2, 3, 5], ["shirt", "coat", "bag", "boot"]
    none = torch.zeros(4, 4)
    served = Served("hidden 1", 0.1, classes, names, none, none, none, [[3, 0], [], [0, 3, 5], [0, 2, 3, 5]])
    assert [name_of(served, j) for j in range(4)] == [
        "bag, shirt",
        "no class more than another",
        "all but coat",
        "shirt, coat, bag, boot",
    ]
    assert wrapped("shirt, coat, bag, boot, sandal, dress, trouser") == "shirt, coat, bag,\nboot, sandal, …"
