"""Where faults happen: runs of a tiny network in a temporary folder, the commands on them, and the right answers."""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from safetensors.torch import load_file

import gammacaps
from benchmarks.faults.judge import Ran, metrics_wrong, plain, rows_of, unequal

RUN, LIMIT = "run", 180.0  # the folder's name in each place; seconds until a command counts as hung
STEPS, LOG_EVERY, CHECKPOINT_EVERY = 200, 5, 15
LINES = STEPS // LOG_EVERY
TINY = ("--model", "filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]", "--batch", "16")
TRAIN = (
    *("train", "--out", RUN, "--data", "fashion-mini", *TINY, "--steps", str(STEPS), "--device", "cpu"),
    *("--eps", "0.1", "--attack-steps", "2", "--attack-step", "0.05"),
    *("--log-every", str(LOG_EVERY), "--checkpoint-every", str(CHECKPOINT_EVERY)),
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": TRAIN,
    "train --seed 1": (*TRAIN, "--seed", "1"),
    "train --overwrite": (*TRAIN, "--seed", "1", "--overwrite"),
    "resume": ("train", "--resume", RUN),
    "evaluate": ("evaluate", RUN, "--limit", "40", "--attacks", "noise", "fgsm", "pgd", "--no-checks"),
    "audit": ("audit", RUN, "--limit", "20", "--taus", "0.5", "--attack-steps", "3"),
    "report": ("report", RUN, *("--starts", "1", "--steps", "3", "--images", "40", "--trees", "1", "--capsules", "2")),
}
OUTPUTS: dict[str, tuple[str, ...]] = {
    "train": ("model.safetensors", "checkpoint.safetensors"),
    "resume": ("model.safetensors", "checkpoint.safetensors"),
    "evaluate": ("results.json", "evaluation"),
    "audit": ("audit.json", "audit-eps.png", "audit-tau.png"),
    "report": ("report.html",),
}
VERBS = ("evaluate", "audit", "report")


class Command:
    """A command that was started as a user would, in its own session, so that our signals reach it alone."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str], before: Callable[[], None] | None):
        self.name, self.started = name, time.monotonic()
        self.sent: int | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gammacaps", *COMMANDS[name]],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=before,
        )

    def running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        self.sent = number
        self.process.send_signal(number)

    def ended(self, limit: float = LIMIT) -> Ran:
        """Waits for its end; one that hangs is ended."""
        try:
            errors = self.process.communicate(timeout=limit)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return Ran(self.name, None, self.process.communicate()[1].decode(errors="replace"), self.sent)
        return Ran(self.name, self.process.returncode, errors.decode(errors="replace"), self.sent)


class Stage:
    """A whole run with all its results, the same one broken off halfway, and what is right."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        self.environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(self.cache),
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": os.pathsep.join((str(Path(gammacaps.__file__).parents[1]), os.environ.get("PYTHONPATH", ""))),
        }
        self.started: list[Command] = []
        self.seconds: dict[str, float] = {}
        self.whole, self.other, self.part = (folder / name for name in ("whole", "other", "part"))
        for place, names in ((self.whole, ("train", *VERBS)), (self.other, ("train --seed 1",))):
            place.mkdir()
            for name in names:
                self._make(name, place)
        self.part.mkdir()
        command = self.start("train", self.part)
        wait_for_lines(command, self.part, LINES // 2)
        command.process.kill()
        command.ended()
        self.seeds = {seed: self._trained(place / RUN) for seed, place in enumerate((self.whole, self.other))}

    def _make(self, name: str, place: Path) -> None:
        command = self.start(name, place)
        ran = command.ended()
        if ran.status != 0:
            raise RuntimeError(f"{name} does not even work undisturbed:\n{ran.errors}")
        self.seconds[name] = time.monotonic() - command.started

    @contextlib.contextmanager
    def place(self, kind: Path | None = None, without: str = "") -> Iterator[Path]:
        """A new folder, with a copy of a run in it, less what a command is to make there."""
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as name:
            if kind is not None:
                copy_run(kind, Path(name), without)
            try:
                yield Path(name)
            finally:  # when we are interrupted ourselves
                for command in self.started:
                    if command.running():
                        command.process.kill()
                self.started.clear()

    def kind_for(self, command: str) -> Path | None:
        """The run that a command starts from."""
        return {"train": None, "resume": self.part}.get(command, self.whole)

    def start(
        self, name: str, folder: Path, *, cache: Path | None = None, before: Callable[[], None] | None = None
    ) -> Command:
        environment = self.environment if cache is None else {**self.environment, "XDG_CACHE_HOME": str(cache)}
        self.started.append(Command(name, folder, environment, before))
        return self.started[-1]

    def run(self, name: str, folder: Path, *, cache: Path | None = None) -> Ran:
        return self.start(name, folder, cache=cache).ended()

    def finish(self, folder: Path) -> Ran:
        """Trains to the end, from wherever a training stands."""
        return self.run("resume" if (folder / RUN / "config.json").exists() else "train", folder)

    def _trained(self, run: Path) -> tuple[Any, list[Any]]:
        return load_file(run / "model.safetensors"), rows_of(run / "metrics.jsonl")

    def wrong(self, command: str, folder: Path, *, seed: int = 0, stops: int = 0) -> list[str]:
        """How the outcome of a command in a folder differs from the right one, after so many orderly stops."""
        run, right = folder / RUN, self.whole / RUN
        if command in ("train", "resume"):
            weights, metrics = self.seeds[seed]
            return weights_wrong(run, weights) + metrics_wrong(rows_of(run / "metrics.jsonl"), metrics, stops)
        files = [path.relative_to(right) for name in OUTPUTS[command] for path in _files(right / name)]
        return [f"{name} differs" for name in map(str, files) if not _same(run / name, right / name)]


def copy_run(kind: Path, folder: Path, without: str = "") -> None:
    shutil.copytree(kind / RUN, folder / RUN)
    for name in OUTPUTS[without] if without in VERBS else ():
        path = folder / RUN / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def weights_wrong(run: Path, right: Any) -> list[str]:
    try:
        names = unequal(load_file(run / "model.safetensors"), right)
    except Exception as error:  # whatever safetensors raises: the weights are not there
        return [f"model.safetensors can't be read ({type(error).__name__})"]
    return [f"the weights differ ({len(names)} of {len(right)} tensors)"] if names else []


def wait_for_lines(command: Command, folder: Path, lines: int) -> None:
    """Until a training has written so many lines of metrics, or has ended."""
    path, limit = folder / RUN / "metrics.jsonl", time.monotonic() + LIMIT
    while command.running() and time.monotonic() < limit:
        with contextlib.suppress(OSError):
            if path.read_bytes().count(b"\n") >= lines:
                return
        time.sleep(0.005)


def wait_for_moment(stage: Stage, command: Command, folder: Path, chance: Random, *, from_start: bool = True) -> None:
    """Until a moment drawn at random: of a training by its lines, or while it starts; of other commands by time."""
    drawn, pause = chance.random(), chance.random()
    if command.name not in ("train", "resume"):
        time.sleep(drawn * stage.seconds[command.name])
    elif from_start and drawn < 0.2:
        time.sleep(pause * stage.seconds["train"] / 2)
    else:
        before = len(rows_of(folder / RUN / "metrics.jsonl"))
        wait_for_lines(command, folder, before + 1 + int(drawn * (LINES - before - 1)))
        time.sleep(pause * 0.1)


def _files(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


def _same(path: Path, right: Path) -> bool:
    """Whether two files say the same; of what was kept of an attack, whether the predictions are the same."""
    if not path.is_file():
        return False
    if path.suffix == ".png":
        return True  # a picture of what audit.json says
    if path.suffix != ".json":
        return path.read_bytes() == right.read_bytes()
    with contextlib.suppress(ValueError):
        return bool(plain(json.loads(path.read_bytes())) == _right(right))
    return False


@functools.cache
def _right(path: Path) -> Any:
    return plain(json.loads(path.read_bytes()))
