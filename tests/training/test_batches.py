import contextlib
import subprocess
import sys

import numpy as np
import pytest
import torch

from gammacaps.data import StoredSet, load_set, open_set, store_set
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.batches import batches
from gammacaps.training.train import train

TINY = ("filters=4", "primary_types=2", "hidden=[4]", "decoder=[]")


def test_a_set_on_disk_gives_the_batches_of_the_set_in_memory(tmp_path):
    store_set("fashion-mini", tmp_path / "set")
    on_disk, in_memory = open_set(tmp_path / "set", "train"), load_set("fashion-mini", "train")
    assert isinstance(on_disk, StoredSet)
    config, cpu = TrainConfig(batch=900, seed=3, shift=2, flip=True), torch.device("cpu")
    with contextlib.closing(batches(on_disk, config, slice(100, 500), cpu, 1)) as coming:
        expected = batches(in_memory, config, slice(100, 500), cpu, 1)
        for _ in range(4):  # into the third epoch
            ours, theirs = next(coming), next(expected)
            assert torch.equal(ours[0], theirs[0])
            assert torch.equal(ours[1], theirs[1])


def test_a_batch_that_can_t_be_read_stops_training(tmp_path, monkeypatch):
    store_set("fashion-mini", tmp_path / "set")
    data = open_set(tmp_path / "set", "train")
    monkeypatch.setattr(type(data.images), "__getitem__", lambda *_: (_ for _ in ()).throw(OSError("the disk is gone")))
    coming = batches(data, TrainConfig(), slice(0, 9), torch.device("cpu"), 0)
    with contextlib.closing(coming), pytest.raises(OSError, match="the disk is gone"):
        next(coming)


@pytest.mark.slow
def test_training_on_disk_ends_at_the_weights_of_training_in_memory(tmp_path):
    store_set("fashion-mini", tmp_path / "set")
    for name, data in (("memory", "fashion-mini"), ("disk", str(tmp_path / "set"))):
        config = TrainConfig(data=data, model=TINY, steps=3, batch=32, eps=0.1, attack_steps=2, device="cpu")
        train(config, tmp_path / name)
    ours, theirs = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("disk", "memory"))
    assert ours == theirs


MEMORY = """
import sys
from pathlib import Path
from gammacaps.training import loop
from gammacaps.training.train import train
from gammacaps.runs.train_config import TrainConfig

most, take_step = 0, loop.take_step

def watched(*given):
    global most
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    most = max(most, int(fields["RssAnon"].split()[0]) / 1024)
    return take_step(*given)

loop.take_step = watched
model = ("filters=4", "kernel=5", "primary_types=2", "hidden=[4]", "decoder=[]")
for number, data in enumerate(sys.argv[2:]):
    most = 0
    config = TrainConfig(data=data, model=model, robust=False, steps=20, batch=64, device="cpu")
    train(config, Path(sys.argv[1]) / str(number))
    print(most)
"""


def write_set(folder, count):
    folder.mkdir()
    for split, images in (("train", count), ("test", 10)):
        pixels = np.lib.format.open_memmap(folder / f"{split}_images.npy", "w+", np.uint8, (images, 1, 24, 24))
        pixels[:] = np.random.default_rng(0).integers(0, 256, (1, 24, 24), np.uint8)
        np.save(folder / f"{split}_labels.npy", np.arange(images) % 10)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_memory_does_not_grow_with_a_set_on_disk(tmp_path):
    for count in (20_000, 100_000):
        write_set(tmp_path / str(count), count)
    folders = [tmp_path / str(count) for count in (20_000, 100_000)]
    command = [sys.executable, "-c", MEMORY, tmp_path / "runs", *folders]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    small, large = map(float, done.stdout.split())
    assert large - small < 30  # MB; in memory, as floats, it would be 184 more
