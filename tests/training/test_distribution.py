import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from together import started, together

import gammacaps
from gammacaps.cli import main
from gammacaps.data import load_set
from gammacaps.distributed import processes
from gammacaps.distributed.launch import Launch, launch
from gammacaps.distributed.processes import ALONE, Processes
from gammacaps.distributed.rendezvous import agreed_name
from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.checkpoint import CHECKPOINT, step_of
from gammacaps.training.execution import recompute_encoder
from gammacaps.training.learner import Learner
from gammacaps.training.new_model import new_model
from gammacaps.training.sharing import Sharing, parts_of
from gammacaps.training.step import Objective, take_step
from gammacaps.training.train import resume, train

TINY = ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]")
# Nothing that depends on the length, so that a shorter run is the beginning of a longer one.
EVEN = {"schedule": "constant", "eps_ramp": 0.0}


def tiny(**changes) -> TrainConfig:
    values = {"model": TINY, "batch": 31, "steps": 6, "eps": 0.1, "attack_steps": 2, "device": "cpu", "log_every": 1}
    return TrainConfig(**{**values, **EVEN, **changes})


def options(config: TrainConfig) -> list[str]:
    """A configuration as a command line."""
    words = []
    for name, value in vars(config).items():
        if value != getattr(TrainConfig(), name):
            given = value if isinstance(value, tuple) else (str(value),)
            words += [f"--{'' if value is not False else 'no-'}{name.replace('_', '-')}"]
            words += [] if isinstance(value, bool) else given
    return words


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_nearly_the_same_steps(run: Path, other: Path) -> None:
    """Of a few steps from the same weights, whose sums may be ordered differently.

    Rounding moves a step of the attack only where a gradient is next to 0, and such steps do not add up over so few
    updates. Adam's steps hide the gradients' size; its first moment, a sum of the gradients, shows it.
    """
    assert losses(run)[0] == pytest.approx(losses(other)[0], rel=1e-5)
    assert losses(run) == pytest.approx(losses(other), rel=1e-3)
    ours, theirs = (load_file(folder / CHECKPOINT) for folder in (run, other))
    assert ours.keys() == theirs.keys()
    moments = [name for name in ours if name.startswith("adam.exp_avg.")]
    assert moments
    for name in moments:
        assert (ours[name] - theirs[name]).norm() <= 0.01 * theirs[name].norm(), name


@pytest.mark.parametrize(("size", "count", "accumulate"), [(31, 3, 1), (31, 2, 3), (8, 8, 1), (7, 1, 4), (100, 1, 1)])
def test_the_parts_of_all_processes_are_the_batch_each_image_once(size, count, accumulate):
    batch = torch.arange(size)
    seen, weight = [], 0.0
    for rank in range(count):
        parts = parts_of(size, Processes(rank, count), accumulate)
        own = batch[parts[0].in_batch.start : parts[-1].in_batch.stop]
        assert [part.last for part in parts] == [False] * (accumulate - 1) + [True]
        for part in parts:
            assert torch.equal(own[part.given], batch[part.in_batch])
            seen.append(own[part.given])
            weight += part.weight
    assert torch.equal(torch.cat(seen), batch)
    assert weight == pytest.approx(1)
    assert max(map(len, seen)) - min(map(len, seen)) <= 1


def test_a_batch_smaller_than_its_parts_is_one_sentence():
    with pytest.raises(
        InputError, match=r"A batch of 5 images can't be split into 6 parts \(2 processes, --accumulate 3\)"
    ):
        parts_of(5, Processes(0, 2), 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{}, {"trades": 2.0, "ema": 0.9}, {"weight_perturbation": 0.05, "attack_start": "blocks"}]
)
def test_accumulated_parts_give_the_gradient_of_the_whole_batch(changes):
    """In float64, where no sign of the attack's gradients depends on the order of a sum."""
    config, data, found = tiny(**changes), load_set("fashion-mini", "train"), []
    images, labels = data.images[:31].double(), data.labels[:31]
    for accumulate in (1, 4):
        model = new_model(config, data).double()
        average = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        learner = Learner(model, torch.optim.Adam(model.parameters(), lr=config.lr), average)
        sharing = Sharing(Objective(config, model), len(images), accumulate=accumulate)
        said = take_step(config, learner, images, labels, 0.5, sharing)
        found.append((said, [parameter.grad for parameter in model.parameters()]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_a_training_in_parts_takes_the_steps_of_one_in_whole_batches(tmp_path):
    train(tiny(steps=2), tmp_path / "whole")
    train(tiny(steps=2, accumulate=4), tmp_path / "parts")
    assert_nearly_the_same_steps(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize(
    "network",
    [
        {"preset": "small", "model": TINY},
        {"preset": "matrix", "model": ("filters=8", "primary_types=2", "types=[3,3]")},
        {"preset": "cnn", "model": ("filters=[4,4]", "width=16")},
    ],
)
def test_an_encoder_computed_again_gives_the_same_weights_and_keeps_less(tmp_path, network):
    kept = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[again] = kept.get(again, 0) + tensor.nbytes
        return tensor

    for again in (False, True):
        config = tiny(steps=2, recompute_encoder=again, **network)
        train(config, tmp_path / str(again))
        model = gammacaps.load(tmp_path / str(again))
        if again:
            recompute_encoder(model)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            model(torch.rand(16, 1, 28, 28))
    whole, less = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("False", "True"))
    assert whole == less
    assert kept[True] < kept[False] * (1 if network["preset"] == "matrix" else 0.9)  # EM routing keeps far more


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one_and_one_goes_on_from_two(tmp_path):
    config = tiny(steps=2, ema=0.9)
    train(config, tmp_path / "one")
    done = together(2, "train", *options(config), "--accumulate", 2, "--out", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Saved in") == 1
    assert_nearly_the_same_steps(tmp_path / "two", tmp_path / "one")
    described = json.loads((tmp_path / "two" / "config.json").read_text())
    assert described["machine"]["processes"] == 2
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in (tmp_path / "one").iterdir()}

    for run in ("one", "two"):
        resume(tmp_path / run, steps=3)
    assert_nearly_the_same_steps(tmp_path / "two", tmp_path / "one")
    assert len(losses(tmp_path / "two")) == 3


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one_with_all_options(tmp_path):
    """Changed images, moved weights and a validation, of whose images each process measures a part."""
    changes = {"turn": 10.0, "zoom": 0.1, "shift": 1, "brightness": 0.1, "contrast": 0.2, "smoothing": 0.1}
    learned = {"weight_decay": 0.1, "weight_perturbation": 0.01, "validate": 50, "validate_every": 1}
    config = tiny(steps=2, **changes, **learned)
    train(config, tmp_path / "one")
    done = together(2, "train", *options(config), "--accumulate", 2, "--out", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Kept the weights of step") == 1
    assert_nearly_the_same_steps(tmp_path / "two", tmp_path / "one")
    found = [
        [json.loads(line)["validation"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    ]
    assert found[0] == pytest.approx(found[1], abs=0.1)  # rounding may turn an image


@pytest.mark.slow
def test_two_processes_start_their_attack_at_the_blocks_of_one(tmp_path):
    """Where the attack stays: over blocks many gradients are next to 0, and rounding turns their signs."""
    config = tiny(steps=2, attack_start="blocks", attack_step=0.0)
    train(config, tmp_path / "one")
    done = together(2, "train", *options(config), "--accumulate", 2, "--out", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    assert_nearly_the_same_steps(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_three_processes_without_a_decoder_s_loss_go_on_from_one(tmp_path):
    train(tiny(steps=1, reconstruction=0.0), tmp_path / "run")
    train(tiny(steps=3, reconstruction=0.0), tmp_path / "one")
    done = together(3, "train", "--resume", tmp_path / "run", "--steps", 3)
    assert done.returncode == 0, done.stderr
    assert_nearly_the_same_steps(tmp_path / "run", tmp_path / "one")


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_stops_all_processes_with_one_sentence(tmp_path):
    bad = together(2, "train", *options(tiny(steps=40, lr=1e30)), "--out", tmp_path / "bad")
    assert bad.returncode == 2
    assert bad.stderr.count("Training became NaN or infinite by step") == 1
    assert "Traceback" not in bad.stderr


@pytest.mark.slow
def test_ctrl_c_in_one_process_saves_and_stops_all_with_one_sentence(tmp_path):
    run = tmp_path / "run"
    with started(2, "train", *options(tiny(steps=100_000)), "--out", run) as first:
        deadline = time.monotonic() + 120
        while not (run / "metrics.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        first.send_signal(signal.SIGINT)
        _, words = first.communicate(timeout=120)
    assert first.returncode == 130, words
    assert words.count(f"and saved; go on with: gammacaps train --resume {run}") == 1
    assert "Traceback" not in words
    resume(run, steps=step_of(run) + 1)


# One of the processes that torchrun starts first is killed in the middle of a step.
KILLED = """
import os, signal, sys
from pathlib import Path
import gammacaps.training.loop as loop
from gammacaps.cli import main

take_step = loop.take_step

def deadly(config, learner, *given):
    if (os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"], learner.step) == ("1", "0", 5):
        Path(sys.argv[1]).write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return take_step(config, learner, *given)

loop.take_step = deadly
main(sys.argv[2:])
"""


@pytest.mark.slow
def test_a_killed_worker_is_started_again_and_the_run_ends_at_the_very_same_place(tmp_path):
    """That of as many processes that nobody kills: then all sums are in the same order."""
    arguments = ["train", *options(tiny(steps=8, checkpoint_every=3))]
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", "3", tmp_path / "killed.py", tmp_path / "pid", *arguments, "--out", tmp_path / "run"]
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert f"(pid: {(tmp_path / 'pid').read_text()})" in done.stderr  # torchrun has seen it die
    assert "Saved in" in done.stdout
    unbroken = together(2, *arguments, "--out", tmp_path / "unbroken")
    assert unbroken.returncode == 0, unbroken.stderr
    assert len(losses(tmp_path / "run")) == 8
    assert losses(tmp_path / "run") == losses(tmp_path / "unbroken")
    ours, theirs = (load_file(tmp_path / name / CHECKPOINT) for name in ("run", "unbroken"))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_a_launch_that_starts_again_goes_on_and_another_does_not(tmp_path, monkeypatch):
    run, config = tmp_path / "run", tiny(steps=4, checkpoint_every=2)
    told = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    told |= {"TORCHELASTIC_RUN_ID": "job 7", "TORCHELASTIC_RESTART_COUNT": "0"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert launch() == Launch(name="job 7")
    train(config, run)
    first = (run / "model.safetensors").read_bytes()
    train(config, run)  # the same launch once more, after its end: there is nothing to do
    assert (run / "model.safetensors").read_bytes() == first
    with pytest.raises(InputError, match="exists already"):
        train(tiny(steps=5), run)  # another training
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job 8")
    with pytest.raises(InputError, match="exists already"):
        train(config, run)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["job 7", "none"])
def test_a_restart_takes_no_other_launch_s_run_and_replaces_it_once(tmp_path, monkeypatch, name):
    run, config = tmp_path / "run", tiny(steps=4, checkpoint_every=2)
    train(config, run)
    (run / "of the old run").touch()
    told = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    logs = "/tmp/torchelastic_0pbraard/none_ga1i7c35"
    told |= {"TORCHELASTIC_RUN_ID": name, "TORCHELASTIC_RESTART_COUNT": "1"}
    told |= {"TORCHELASTIC_ERROR_FILE": f"{logs}/attempt_1/0/error.json"}
    for key, value in told.items():
        monkeypatch.setenv(key, value)
    with pytest.raises(InputError, match="exists already"):
        train(config, run)
    train(config, run, overwrite=True, until=3)
    assert (step_of(run), (run / "of the old run").exists()) == (3, False)
    assert json.loads((run / "config.json").read_text())["launch"] == ("none_ga1i7c35" if name == "none" else name)
    (run / "of this run").touch()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", f"{logs}/attempt_2/0/error.json")
    train(config, run, overwrite=True)
    assert (step_of(run), (run / "of this run").exists()) == (4, True)


def test_a_launch_without_a_name_or_logs_goes_on_with_nothing(tmp_path, monkeypatch):
    told = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    for key, value in {**told, "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_ERROR_FILE": ""}.items():
        monkeypatch.setenv(key, value)
    assert launch() == Launch()
    train(tiny(steps=1), tmp_path / "run")
    with pytest.raises(InputError, match="exists already"):
        train(tiny(steps=1), tmp_path / "run")


@pytest.mark.slow
def test_what_is_given_beside_resume_counts_and_the_rest_stays(tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(tiny(steps=1, accumulate=4, recompute_encoder=True), run)
    used = []

    def learn(config, data, model, *_, **__):
        used.append((config.device, config.accumulate, config.recompute_encoder))
        return model

    monkeypatch.setattr("gammacaps.training.train._learn", learn)
    for words in ([], ["--accumulate", "1"], ["--no-recompute-encoder"], ["--device", "auto", "--accumulate=2"]):
        main(["train", "--resume", str(run), "--steps", "2", *words])
    assert used == [("cpu", 4, True), ("cpu", 1, True), ("cpu", 4, False), ("auto", 2, True)]


def test_processes_find_one_another_whatever_those_before_left(tmp_path):
    store = dist.HashStore()
    store.set("asked by 1", "an old question")
    store.set("asked by 2", "another")
    names = set()
    for count in (3, 3, 2, 4):
        with ThreadPoolExecutor(count) as pool:
            found = set(pool.map(agreed_name, [store] * count, range(count), [count] * count))
        assert len(found) == 1
        names |= found
    assert len(names) == 4


def test_a_process_that_never_comes_is_not_waited_for_forever():
    with pytest.raises(InputError, match=r"Of 3 processes these did not come within 0\.1 seconds: 1, 2; see what"):
        agreed_name(dist.HashStore(), 0, 3, 0.1)
    with pytest.raises(InputError, match=r"Of 3 processes these did not come within 0\.1 seconds: 0; see what"):
        agreed_name(dist.HashStore(), 2, 3, 0.1)


def test_one_process_does_everything_itself():
    assert ALONE.first(lambda: 3) == ALONE.each(lambda: 3) == 3
    assert ALONE.map(lambda x: x * x, range(4)) == [0, 1, 4, 9]
    assert ALONE.most(1.5, 0) == (1.5, 0)
    assert ALONE.same("data")


@pytest.mark.slow
def test_machines_with_other_pixels_are_told(tmp_path):
    data = load_set("fashion-mini", "test")
    for rank in (0, 1):
        pixels = (data.images[:200] * 255).round().to(torch.uint8).numpy()
        pixels ^= rank  # the last bit of each pixel
        (tmp_path / str(rank)).mkdir()
        np.savez(tmp_path / str(rank) / "own.npz", images=pixels, labels=data.labels[:200].numpy())
    bad = together(2, "train", *options(tiny(data="own.npz")), "--out", tmp_path / "run", apart=tmp_path)
    assert bad.returncode == 2, bad.stderr
    assert bad.stderr.count("own.npz is not the same on all machines: give each the same files") == 1
    assert not (tmp_path / "run").exists()


def test_a_batch_too_small_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="can't be split into 40 parts"):
        train(tiny(accumulate=40), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_each_process_takes_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    taken = []
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(processes, "launch", lambda: Launch(rank=3, count=4, place=1, beside=2))
    assert processes.own_device("auto").type == "cuda"
    assert taken == [1]
    assert processes.own_device("cpu").type == "cpu"
    with pytest.raises(InputError, match="Each of 4 processes takes a GPU of its own, not all cuda:1"):
        processes.own_device("cuda:1")
    monkeypatch.setattr(processes, "launch", lambda: Launch(rank=3, count=4, place=3, beside=4))
    with pytest.raises(InputError, match=r"4 processes were started on a machine with 2 GPUs.*--nproc-per-node 2"):
        processes.own_device("cuda")


def test_other_commands_run_in_one_process(monkeypatch, capsys):
    monkeypatch.setattr("gammacaps.cli.launch", lambda: Launch(count=2))
    with pytest.raises(SystemExit) as end:
        main(["report", "run"])
    assert end.value.code == 2
    assert "gammacaps report runs in one process: start it without torchrun." in capsys.readouterr().err
