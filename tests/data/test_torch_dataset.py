"""Datasets by import path, from a module that each test writes into its working folder."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gammacaps.data import find, load_data, load_set, store_set
from gammacaps.data.inspection import inspect_set
from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train

SOURCE = """
import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset


class Pets(Dataset):
    classes = ["cat", "dog"]

    def __init__(self, count=10, kind="tensor"):
        self.count, self.kind = count, kind

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        if self.kind == "tensor":
            image = torch.full((3, 4, 6), k / 100)
        elif self.kind == "pil":
            image = Image.fromarray(np.full((4, 6), k, np.uint8))
        elif self.kind == "array":
            image = np.full((4, 6, 3), k, np.uint8)
        elif self.kind == "path":
            image = "picture.png"
        elif self.kind == "sizes":
            image = torch.zeros(1, 4, 6 + k)
        elif self.kind == "bright":
            image = torch.full((1, 4, 6), 2.0)
        elif self.kind == "fails":
            raise OSError("disk")
        elif self.kind == "dict":
            return {"image": 1}
        elif self.kind == "words":
            return torch.zeros(1, 4, 6), "cat"
        return image, k % 2


class Stream(IterableDataset):
    def __iter__(self):
        yield torch.zeros(1, 4, 6), 0


plain, pil, array = Pets(), Pets(kind="pil"), Pets(kind="array")
path, sizes, bright, fails, items, words, empty = (
    Pets(kind=kind) for kind in ("path", "sizes", "bright", "fails", "dict", "words", "tensor")
)
empty.count = 0
stream, number = Stream(), 3
unnamed = Pets()
unnamed.classes = ["cat"]


def parted(split):
    return Pets(count=12 if split == "train" else 4)


def needs(folder):
    return plain
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pets.py").write_text(SOURCE)
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    for name in ("pets", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(("name", "unit"), [("plain", 100), ("pil", 255), ("array", 255)])
def test_a_dataset_is_read_into_tensors_and_every_fifth_of_a_class_is_for_testing(name: str, unit: int) -> None:
    train, test = load_set(f"pets:{name}", "train"), load_set(f"pets:{name}", "test")
    assert train.class_names == ("cat", "dog")
    assert train.images.shape == (8, 1 if name == "pil" else 3, 4, 6)
    assert train.labels.tolist() == [0, 1] * 4
    assert (test.images[:, 0, 0, 0] * unit).round().int().tolist() == [8, 9]


def test_a_function_of_the_split_and_a_class_and_a_size() -> None:
    assert len(load_set("pets:parted", "train").images) == 12
    assert len(load_set("pets:parted", "test").images) == 4
    assert len(load_set("pets:Pets", "train").images) == 8
    images, _ = load_data("pets:plain", "test", size=2)
    assert images.shape == (2, 3, 2, 2)
    torch.testing.assert_close(images[0], torch.full((3, 2, 2), 0.08))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere:plain", "nowhere:plain can't be imported .No module named 'nowhere'.: run where nowhere lies"),
        ("pets:birds", "The module pets has no 'birds': correct the part after the colon"),
        ("broken:plain", "broken:plain can't be imported .ZeroDivisionError.*fix the module broken"),
        ("pets:stream", "pets:stream is a Stream, not a map-style Dataset"),
        ("pets:number", "pets:number is a int, not a map-style Dataset"),
        ("pets:needs", "pets:needs fails when it is called .*a function of `split` or nothing"),
        ("pets:empty", "pets:empty has no items"),
        ("pets:items", "Item 0 of pets:items is a dict, not a pair"),
        ("pets:path", "Item 0 of pets:path holds a str of shape .*return a PIL image"),
        ("pets:words", "Item 0 of pets:words has the label 'cat': number the classes"),
        ("pets:sizes", r"Item 1 of pets:sizes has the shape \(1, 4, 7\) .* item 0 has \(1, 4, 6\): give a size"),
        ("pets:bright", "Item 0 of pets:bright: image 0 is 2 at channel 0"),
        ("pets:fails", "Item 0 of pets:fails can't be read .OSError.'disk'"),
        ("pets:unnamed", "pets:unnamed has 1 class names, but the labels go up to 1"),
    ],
)
def test_what_can_t_be_read_gets_one_sentence(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_set(name, "train")


def test_a_dataset_can_be_trained_on_found_checked_and_stored() -> None:
    small: dict[str, Any] = {"preset": "cnn", "model": ("filters=[2, 2]", "width=4"), "steps": 1, "batch": 4}
    train(TrainConfig(data="pets:array", device="cpu", **small), Path("run"))
    assert json.loads(Path("run/config.json").read_text())["data"]["class_names"] == ["cat", "dog"]
    assert find("pets:array") == Path("pets.py").resolve()
    assert find("nowhere.at.all:array") is None
    assert store_set("pets:array", "stored") == {"train": 8, "test": 2}
    assert inspect_set("stored").problems == inspect_set("pets:array").problems
    assert torch.equal(load_data("stored", "train")[0], load_data("pets:array", "train")[0])


@pytest.mark.parametrize("name", ["builtins:dict", "sys:exit", "builtins:exit", "quits:data"])
def test_what_is_built_in_or_exits_is_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quits.py").write_text("raise SystemExit(0)")
    with pytest.raises(InputError):
        load_set(name)
