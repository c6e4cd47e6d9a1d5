import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

import gammacaps
from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.models.shipped import run_folder
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training import watch
from gammacaps.training.batches import batch_of
from gammacaps.training.checkpoint import CHECKPOINT, step_of
from gammacaps.training.learner import Learner
from gammacaps.training.losses import classification_loss, reconstruction_loss, spread_margin
from gammacaps.training.new_model import new_model
from gammacaps.training.step import take_step
from gammacaps.training.train import Finished, resume, train

TINY = ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]")


def tiny(**changes) -> TrainConfig:
    """A network small enough to train in seconds, on clean images unless told otherwise."""
    values = {"model": TINY, "batch": 32, "steps": 8, "robust": False, "device": "cpu", "log_every": 2, **changes}
    return TrainConfig(**values)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def command(*arguments) -> list[str]:
    return [sys.executable, "-m", "gammacaps", *map(str, arguments)]


def options(**changes) -> list[str]:
    values = {"model": TINY, "batch": 32, "steps": 40, "attack-steps": 2, "eps": 0.1, "device": "cpu", **changes}
    words = []
    for name, value in values.items():
        words += [f"--{name}", *(value if isinstance(value, tuple) else (str(value),))]
    return words


@pytest.mark.slow
def test_training_learns(tmp_path):
    model = train(tiny(steps=60, batch=64), tmp_path / "run")
    images, labels = gammacaps.load_data("fashion-mini")
    assert (model(images).argmax(1) == labels).float().mean() > 0.45
    losses = [row["loss"] for row in rows(tmp_path / "run")]
    assert losses[-1] < 0.75 * losses[0]
    assert not model.training


@pytest.mark.slow
def test_training_under_attack_resists_attack_better_than_training_without(tmp_path):
    from gammacaps.attacks import pgd

    images, labels = (t[:200] for t in gammacaps.load_data("fashion-mini"))
    kept = {}
    for robust in (True, False):
        config = tiny(steps=60, batch=64, robust=robust, eps=0.2, attack_steps=1, gamma=0.0)
        model = train(config, tmp_path / str(robust))
        attacked = pgd(model, images, labels, eps=0.2, step=0.04, steps=10)
        kept[robust] = (model(attacked).argmax(1) == labels).float().mean().item()
    assert kept[True] > kept[False] + 0.1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path):
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        train(tiny(seed=seed, robust=True, attack_steps=2, ema=0.9), tmp_path / name)
    assert weights(tmp_path / "first") == weights(tmp_path / "again")
    assert weights(tmp_path / "first") != weights(tmp_path / "other")


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_very_same_weights(tmp_path):
    config = tiny(steps=1000, robust=True, attack_steps=2, eps=0.1, checkpoint_every=4, log_every=1, ema=0.9)
    steady = dataclasses.replace(config, schedule="constant", eps_ramp=0.0)  # so that its length changes nothing
    broken = tmp_path / "broken"
    arguments = options(steps=1000, schedule="constant", **{"eps-ramp": 0.0, "checkpoint-every": 4, "log-every": 1})
    call = command("train", *arguments, "--ema", 0.9, "--out", broken)
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with subprocess.Popen(call, stderr=subprocess.DEVNULL, env=environment) as process:
        deadline = time.monotonic() + 120
        while not (broken / CHECKPOINT).exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.05)  # into the middle of a step after it
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    (broken / f".{CHECKPOINT}.12345678").write_bytes(b"half")  # as if it had been killed while writing
    end = rows(broken)[-1]["step"] + 3
    resume(broken, until=end)
    train(steady, tmp_path / "unbroken", until=end)
    assert weights(broken) == weights(tmp_path / "unbroken")
    ours, theirs = load_file(broken / CHECKPOINT), load_file(tmp_path / "unbroken" / CHECKPOINT)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert [row["step"] for row in rows(broken)] == list(range(1, end + 1))
    assert [row["loss"] for row in rows(broken)] == [row["loss"] for row in rows(tmp_path / "unbroken")]
    assert not [p for p in broken.iterdir() if p.name.startswith(".")]


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    run = tmp_path / "run"
    with subprocess.Popen(
        command("train", *options(steps=100_000, **{"log-every": 1}), "--out", run), stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 120
        while not (run / "metrics.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"gammacaps train --resume {run}" in words
    assert "Traceback" not in words
    stopped = rows(run)[-1]["step"]
    gammacaps.load(run)
    resume(run, steps=stopped + 2)
    assert rows(run)[-1]["step"] == stopped + 2
    with pytest.raises(InputError, match="is finished"):
        resume(run)


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_stops_and_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    from_fifth = (spread_margin(4) + spread_margin(5)) / 2  # the margin tells the step
    monkeypatch.setattr(
        "gammacaps.training.step.classification_loss",
        lambda n, s, y, margin, *more: (
            classification_loss(n, s, y, margin, *more) * (float("nan") if margin > from_fifth else 1)
        ),
    )
    run = tmp_path / "run"
    with pytest.raises(InputError, match=f"NaN or infinite by step 6.*last good checkpoint is {run / CHECKPOINT}"):
        train(tiny(checkpoint_every=4, log_every=1), run)
    assert all(torch.isfinite(t).all() for t in load_file(run / CHECKPOINT).values())
    monkeypatch.undo()
    resume(run)
    assert rows(run)[-1]["step"] == 8


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 6 MB, where the system lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    if os.name != "posix" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_loses_nothing(small_disk, capsys):
    run = small_disk / "run"
    arguments = options(steps=6, **{"checkpoint-every": 2, "log-every": 1, "no-robust": ()})
    # Room for a first checkpoint; then the disk fills up.
    train(tiny(steps=2), run)
    good = weights(run), (run / CHECKPOINT).read_bytes()
    room = os.statvfs(small_disk)
    (small_disk / "other").write_bytes(b"x" * (room.f_bavail * room.f_frsize - 4096))
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--resume", str(run), "--steps", "6"])
    assert "No space left on device" in capsys.readouterr().err
    assert (weights(run), (run / CHECKPOINT).read_bytes()) == good
    assert not [p for p in run.iterdir() if p.name.startswith(".")]
    with pytest.raises(SystemExit, match="2"):
        main(["train", *arguments, "--out", str(small_disk / "new")])
    (small_disk / "other").unlink()
    resume(run, steps=6)
    assert rows(run)[-1]["step"] == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"robust": True, "attack_steps": 3},
        {"robust": True, "attack_steps": 1},
        {"robust": True, "attack_steps": 2, "trades": 3.0},
        {"robust": True, "attack_steps": 2, "trades": 3.0, "loss": "ce-log"},
        {"preset": "cnn", "model": ("filters=[4,4]", "width=16"), "robust": True, "attack_steps": 2, "trades": 1.0},
        {
            "preset": "matrix",
            "model": ("filters=8", "primary_types=2", "types=[3,3]"),
            "robust": True,
            "attack_steps": 1,
            "loss": "ce-log",
        },
        {"routing": "rba", "schedule": "decay", "loss": "ce-log"},
        {"schedule": "constant", "reconstruction": 0.0, "eps_ramp": 0.0, "robust": True, "attack_steps": 1},
    ],
)
def test_every_recipe_and_network_takes_steps(tmp_path, changes):
    train(tiny(steps=3, batch=8, log_every=1, **changes), tmp_path / "run")
    assert len(rows(tmp_path / "run")) == 3
    assert all(torch.isfinite(torch.tensor(row["loss"])) for row in rows(tmp_path / "run"))


def learner_of(config):
    data = gammacaps.data.load_set("fashion-mini", "train")
    model = new_model(config, data)
    average = {name: tensor.clone() for name, tensor in model.state_dict().items()} if config.ema else {}
    return Learner(model, torch.optim.Adam(model.parameters(), lr=config.lr), average), data


def test_the_reconstruction_s_target_is_the_clean_image(monkeypatch):
    config = tiny(robust=True, attack_steps=1, eps=0.2, eps_ramp=0.0)
    learner, data = learner_of(config)
    seen = []
    monkeypatch.setattr(
        "gammacaps.training.step.reconstruction_loss",
        lambda made, target: seen.append(target) or reconstruction_loss(made, target),
    )
    images, labels = data.images[:8], data.labels[:8]
    _, _, attacked = take_step(config, learner, images, labels, 0.5)
    assert torch.equal(seen[0], images)
    assert not torch.equal(attacked, images)
    assert (attacked - images).abs().max() <= 0.2


@pytest.mark.parametrize(("chosen", "made_small"), [("own", "margin"), ("ce-log", "ce-log")])
def test_a_step_makes_the_chosen_loss_small(chosen, made_small):
    config = tiny(robust=False, loss=chosen)
    learner, data = learner_of(config)
    images, labels = data.images[:8], data.labels[:8]
    before = classification_loss(made_small, learner.model(images), labels, 0)
    losses, _, _ = take_step(config, learner, images, labels, 0.5)
    assert losses["classification"].item() == pytest.approx(before.item())
    assert classification_loss(made_small, learner.model(images), labels, 0) < before


def test_the_running_mean_of_the_weights():
    config = tiny(ema=0.5)
    learner, data = learner_of(config)
    name = "routed.0.bias"
    expected = learner.average[name].clone()
    for step in range(12):
        take_step(config, learner, data.images[:8], data.labels[:8], 0.1)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * learner.model.state_dict()[name]
        learner.step += 1
    torch.testing.assert_close(learner.average[name], expected)
    assert learner.weights() is learner.average


def test_each_epoch_shows_each_image_once_in_a_new_order():
    config = tiny(batch=4)
    first = torch.cat([batch_of(step, 13, config) for step in range(3)])
    second = torch.cat([batch_of(step, 13, config) for step in range(3, 6)])
    assert len(first.unique()) == len(second.unique()) == 12  # a part batch of one image is left out
    assert not torch.equal(first, second)
    assert torch.equal(batch_of(4, 13, config), batch_of(4, 13, dataclasses.replace(config)))
    assert len(batch_of(0, 3, config)) == 3  # fewer images than a batch


@pytest.mark.slow
def test_minutes_end_training_and_a_config_comes_out_that_goes_in_again(tmp_path):
    from gammacaps.runs.train_config import read_config_file

    train(tiny(steps=None, minutes=0.02), tmp_path / "timed")
    assert 1.2 <= rows(tmp_path / "timed")[-1]["seconds"] < 10
    config = tiny(ema=0.9, schedule="constant")
    train(config, tmp_path / "run")
    assert read_config_file(tmp_path / "run" / "config.json") == config
    train(read_config_file(tmp_path / "run" / "config.json"), tmp_path / "again")
    assert weights(tmp_path / "run") == weights(tmp_path / "again")


@pytest.mark.slow
@pytest.mark.parametrize("killed_at", [2, 4])
def test_a_run_killed_between_its_checkpoint_and_its_weights_loses_nothing(tmp_path, monkeypatch, killed_at):
    """At its first save and at its last."""
    train(tiny(steps=4, checkpoint_every=2), tmp_path / "whole")
    write = watch.write_weights

    def killed(folder, tensors):
        if step_of(folder) == killed_at:
            raise KeyboardInterrupt
        write(folder, tensors)

    monkeypatch.setattr(watch, "write_weights", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tiny(steps=4, checkpoint_every=2), tmp_path / "run")
    monkeypatch.setattr(watch, "write_weights", write)
    with contextlib.suppress(Finished):
        resume(tmp_path / "run")
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


@pytest.mark.slow
def test_a_broken_checkpoint_and_a_foreign_one_get_one_sentence(tmp_path):
    run = tmp_path / "run"
    train(tiny(steps=2), run)
    whole = (run / CHECKPOINT).read_bytes()
    for content in (b"", b"not safetensors at all", whole[: len(whole) // 2]):
        (run / CHECKPOINT).write_bytes(content)
        with pytest.raises(InputError, match="is broken"):
            resume(run, steps=4)
    train(tiny(steps=2, model=(*TINY[:2], "hidden=[5]")), tmp_path / "other")
    (run / CHECKPOINT).write_bytes((tmp_path / "other" / CHECKPOINT).read_bytes())
    with pytest.raises(InputError, match="has the shape"):
        resume(run, steps=4)
    saved = tmp_path / "saved"
    gammacaps.save(gammacaps.create("small"), saved)
    with pytest.raises(InputError, match=r"saved has weights but no checkpoint.* train a run of your own"):
        resume(saved)
    (saved / "model.safetensors").unlink()
    with pytest.raises(InputError, match="without its training"):
        resume(saved)


def test_a_shipped_network_or_its_copy_is_never_trained_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with run_folder("fashion-mini") as copy:
        pass
    before = weights(copy)
    for name in ("mnist", "fashion-mini", str(copy)):
        with pytest.raises(SystemExit) as end:
            main(["train", "--resume", name, "--steps", "2"])
        assert end.value.code == 2
        words = capsys.readouterr().err
        assert f"gammacaps: {name} has weights but no checkpoint.safetensors" in words
        assert "networks that come with gammacaps have none" in words
    assert weights(copy) == before
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_tensorboard_gets_scalars_and_pictures(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(tiny(steps=4, tensorboard=True), tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert {"loss", "accuracy"} <= set(events.Tags()["scalars"])
    assert events.Tags()["images"] == ["clean, attacked, reconstructed"]
