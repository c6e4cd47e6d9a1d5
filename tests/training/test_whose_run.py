"""One training at a time in a folder, on the data that the run was begun with."""

import contextlib
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from gammacaps.data import load_set, store_set
from gammacaps.errors import InputError
from gammacaps.files import read_json
from gammacaps.locks import locked
from gammacaps.runs.metrics import read_metrics
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training import held_folder, loop
from gammacaps.training.checkpoint import CHECKPOINT
from gammacaps.training.signals import Interrupted
from gammacaps.training.train import resume, train

TINY = ("filters=4", "primary_types=2", "hidden=[3]", "decoder=[]")


def tiny(**changes):
    values = {"model": TINY, "batch": 8, "steps": 2, "robust": False, "device": "cpu", "log_every": 1, **changes}
    return TrainConfig(**values)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_in_which_a_training_lives_is_neither_overwritten_nor_resumed(tmp_path):
    run = tmp_path / "run"
    train(tiny(), run)
    before = files(run)
    with locked(run):  # as a training that is at work holds it
        with pytest.raises(InputError, match="Another training is at work"):
            train(tiny(seed=1), run, overwrite=True)
        with pytest.raises(InputError, match="Another training is at work"):
            resume(run, steps=4)
    assert files(run) == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    train(tiny(seed=1), run, overwrite=True)
    assert Run(run).config.train.seed == 1


@pytest.mark.slow
def test_a_training_holds_its_folder_from_the_first_step_to_the_last(tmp_path, monkeypatch):
    run, take_step, refused = tmp_path / "run", loop.take_step, []

    def rival(*arguments):
        for rivalry in (
            lambda: train(tiny(seed=1), run, overwrite=True),
            lambda: resume(run, steps=9),
        ):
            with pytest.raises(InputError, match="Another training is at work"):
                rivalry()
            refused.append(1)
        return take_step(*arguments)

    monkeypatch.setattr(loop, "take_step", rival)
    train(tiny(), run)
    resume(run, steps=3)
    assert len(refused) == 2 * 3
    assert [row["step"] for row in read_metrics(run)] == [1, 2, 3]
    monkeypatch.undo()
    resume(run, steps=4)  # nobody holds it any more


def test_a_folder_that_another_process_made_first_is_not_replaced(tmp_path, monkeypatch):
    run, write_config = tmp_path / "run", held_folder.write_config

    def late(folder, values):
        write_config(folder, values)
        monkeypatch.setattr(held_folder, "write_config", write_config)
        train(tiny(seed=1), run)

    monkeypatch.setattr(held_folder, "write_config", late)
    with pytest.raises(InputError, match=r"run"):
        train(tiny(), run)
    assert Run(run).config.train.seed == 1


# As a training that takes the name, then waits before its first checkpoint.
RIVAL = """
import sys
from pathlib import Path
from gammacaps.distributed.processes import ALONE
from gammacaps.runs.metrics import METRICS
from gammacaps.training.held_folder import HeldFolder
with HeldFolder(Path(sys.argv[1]), ALONE) as held:
    held.make({"model": {}, "of": "the other"}, overwrite=False)
    held.write(lambda folder: (folder / METRICS).write_text("{}"))
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_training_that_another_process_has_begun_meanwhile_stays_whole(tmp_path, monkeypatch, overwrite):
    run, write_config = tmp_path / "new" / "run", held_folder.write_config
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with contextlib.ExitStack() as rivals:

        def late(folder, values):
            write_config(folder, values)
            rival = rivals.enter_context(subprocess.Popen([sys.executable, "-c", RIVAL, str(run)], **pipes))
            assert rival.stdout.readline() == b"ready\n"

        monkeypatch.setattr(held_folder, "write_config", late)
        with pytest.raises(InputError, match="run can't be written"):
            train(tiny(), run, overwrite=overwrite)
        assert sorted(path.name for path in run.iterdir()) == ["config.json", "metrics.jsonl"]
        assert read_json(run / "config.json")["of"] == "the other"
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_a_training_that_refuses_removes_its_own_folder_only(tmp_path, monkeypatch):
    run, moved = tmp_path / "new" / "run", tmp_path / "moved"

    def refuses(*_, **__):
        raise InputError("No.")

    def replaced(*_, **__):
        run.rename(moved)
        run.mkdir()
        raise InputError("No.")

    monkeypatch.setattr("gammacaps.training.train._learn", replaced)
    with pytest.raises(InputError, match="No"):
        train(tiny(), run)
    assert run.exists()
    assert moved.exists()
    run.rmdir()
    run.parent.rmdir()
    monkeypatch.setattr("gammacaps.training.train._learn", refuses)
    with pytest.raises(InputError, match="No"):
        train(tiny(), run)
    assert list(tmp_path.iterdir()) == [moved]


def test_two_that_overwrite_what_is_not_there_yet_do_not_replace_each_other(tmp_path, monkeypatch):
    run, write_config = tmp_path / "run", held_folder.write_config

    def late(folder, values):
        write_config(folder, values)
        monkeypatch.setattr(held_folder, "write_config", write_config)
        train(tiny(seed=1), run, overwrite=True)

    monkeypatch.setattr(held_folder, "write_config", late)
    with pytest.raises(InputError, match="run can't be written"):
        train(tiny(), run, overwrite=True)
    assert Run(run).config.train.seed == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_training_whose_folder_was_replaced_writes_nothing_into_the_other(tmp_path, monkeypatch):
    run, take_step = tmp_path / "run", loop.take_step

    def replaced(*arguments):
        monkeypatch.setattr(loop, "take_step", take_step)
        run.rename(tmp_path / "moved")
        train(tiny(seed=1), run)
        return take_step(*arguments)

    monkeypatch.setattr(loop, "take_step", replaced)
    with pytest.raises(InputError, match="removed, moved or replaced since this training began"):
        train(tiny(), run)
    assert Run(run).config.train.seed == 1
    assert [row["step"] for row in read_metrics(run)] == [1, 2]
    train(tiny(seed=1), tmp_path / "alone")
    assert (run / "model.safetensors").read_bytes() == (tmp_path / "alone" / "model.safetensors").read_bytes()


CHANGES = {
    "labels": lambda arrays: arrays | {"labels": np.roll(arrays["labels"], 1)},
    "shape of the images": lambda arrays: arrays | {"images": arrays["images"][:, 2:, 2:]},
    "class names": lambda arrays: arrays | {"class_names": np.array([*"klmnopqrst"])},
    "number of images": lambda arrays: arrays | {name: arrays[name][:-50] for name in ("images", "labels")},
    "images": lambda arrays: arrays | {"images": arrays["images"] // 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["npz", "stored"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_run_does_not_go_on_with_other_data(tmp_path, monkeypatch, what, stored):
    mini = load_set("fashion-mini")
    images = (mini.images[:200, 0] * 255).round().to("cpu").numpy().astype(np.uint8)
    arrays = {"images": images, "labels": mini.labels[:200].numpy(), "class_names": np.array([*"abcdefghij"])}

    def put(arrays):
        np.savez(tmp_path / "data.npz", **arrays)
        if stored:
            store_set(tmp_path / "data.npz", tmp_path / "folder")

    name = str(tmp_path / ("folder" if stored else "data.npz"))
    put(arrays)
    train(tiny(data=name), tmp_path / "run")
    if stored:
        (tmp_path / "folder").rename(tmp_path / "before")
    put(CHANGES[what](arrays))
    before = files(tmp_path / "run")
    with pytest.raises(InputError, match=rf"is not what .*run was trained on: the {what} changed since"):
        resume(tmp_path / "run", steps=3)
    assert files(tmp_path / "run") == before
    if stored:
        (tmp_path / "folder").rename(tmp_path / "changed")
    put(arrays)
    resume(tmp_path / "run", steps=3)


def test_a_run_of_an_older_version_says_less_of_its_data_and_goes_on(tmp_path):
    run = tmp_path / "run"
    train(tiny(), run)
    stored = Run(run).stored
    for name in ("image_shape", "labels", "brightness"):
        del stored["data"][name]
    held_folder.write_config(run, stored)
    resume(run, steps=3)
    assert Run(run).config.data.labels is not None  # from now on it knows them


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_a_closed_terminal_saves_and_says_how_to_go_on(tmp_path, monkeypatch):
    take_step = loop.take_step

    def hang_up(*arguments):
        os.kill(os.getpid(), signal.SIGHUP)
        return take_step(*arguments)

    monkeypatch.setattr(loop, "take_step", hang_up)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
    try:
        with pytest.raises(Interrupted, match="Stopped at step 1, and saved"):
            train(tiny(steps=5), tmp_path / "run")
        assert (tmp_path / "run" / CHECKPOINT).exists()
        # Under nohup the signal is ignored, and stays so.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        resume(tmp_path / "run")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert Run(tmp_path / "run").steps == 5
