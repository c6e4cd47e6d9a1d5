import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gammacaps.data import load_set
from gammacaps.data.named_sets import EMBEDDED
from gammacaps.data.sample import build


@pytest.mark.slow
@pytest.mark.parametrize(("split", "per_class"), [("train", 200), ("test", 50)])
def test_fashion_mini_is_the_start_of_fashion_mnist(shared_data: Path, split: str, per_class: int) -> None:
    mini = load_set("fashion-mini", split)
    real = load_set("fashion-mnist", split, data_dir=shared_data)
    assert mini.class_names == real.class_names
    assert mini.labels.bincount().tolist() == [per_class] * 10
    # Written unlike the builder: walk through the real set and take an image while its class is not full.
    taken = [0] * 10
    keep = []
    for index, label in enumerate(real.labels.tolist()):
        if taken[label] < per_class:
            taken[label] += 1
            keep.append(index)
    assert torch.equal(mini.labels, real.labels[keep])
    assert torch.equal(mini.images, real.images[keep])


@pytest.mark.slow
def test_the_file_is_small_and_built_the_same_each_time(shared_data: Path, tmp_path: Path) -> None:
    assert EMBEDDED.stat().st_size < 2_000_000
    assert EMBEDDED.with_suffix(".LICENSE").read_text().count("2017 Zalando SE") == 1
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    build(shared_data, first)
    command = [sys.executable, "-W", "error", "-m", "gammacaps.data.sample"]
    subprocess.run([*command, "--source", str(shared_data), "--out", str(second)], check=True)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.npz", "second.npz"]
