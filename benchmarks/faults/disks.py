"""A disk that fills up, and one that is read-only: a small tmpfs where it can be mounted, else the system's limits."""

import contextlib
import functools
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from benchmarks.faults.judge import Tried, ended_badly, leftovers, unreadable
from benchmarks.faults.stage import OUTPUTS, RUN, Stage, copy_run

SIZE, PAGE, BALLAST = 16 << 20, 4096, "ballast"


@functools.cache
def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as name:
        return _mount(Path(name)) and _call("umount", name)


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[None]:
    """A small disk of its own in this empty folder."""
    if not _mount(folder):
        raise RuntimeError(f"{folder} can't be mounted any more.")
    try:
        yield
    finally:
        if not _call("umount", str(folder)):
            _call("umount", "--lazy", str(folder))


def _mount(folder: Path) -> bool:
    return os.geteuid() == 0 and _call("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "gammacaps-faults", str(folder))


def _call(*command: str) -> bool:
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


def set_read_only(folder: Path, read_only: bool) -> bool:
    """Of a disk of its own: for a moment it can't be done, as long as a file is open for writing."""
    for _ in range(200):
        if _call("mount", "-o", f"remount,{'ro' if read_only else 'rw'}", str(folder)):
            return True
        time.sleep(0.01)
    return False


def fill_disk(stage: Stage, chance: Random) -> Tried:
    """A command with less room than it needs says so and leaves all as it was; with room it then does its work."""
    name = chance.choice(("train", "resume", "evaluate", "audit", "report"))
    sizes = [path.stat().st_size for path in _outputs(stage.whole / RUN, name)]
    with stage.place() as here, disk(here) if can_mount() else contextlib.nullcontext():
        kind = stage.kind_for(name)
        if kind is not None:
            copy_run(kind, here, without=name)
        before = None
        if can_mount():
            room = int(chance.random() * sum(sizes)) // PAGE * PAGE
            _fill(here, room)
        else:
            room = int(chance.random() * max(sizes))
            before = _limit(room)
        stood = {path for path in (here / RUN).rglob("*") if path.is_file()}
        ran = stage.start(name, here, before=before).ended()
        lost = ended_badly(ran) + leftovers(here, here / RUN, here / RUN / "evaluation")
        lost += [f"{path.name} is gone" for path in stood if not path.exists()]
        lost += [words for path in (here / RUN).rglob("*") if path.is_file() for words in unreadable(path)]
        (here / BALLAST).unlink(missing_ok=True)
        if ran.status != 0:
            lost += ended_badly(stage.finish(here) if name in ("train", "resume") else stage.run(name, here))
        lost += stage.wrong(name, here)
    return Tried(f"{name} with room for {room} bytes", tuple(lost))


def _outputs(run: Path, name: str) -> list[Path]:
    paths = [run / output for output in OUTPUTS[name]]
    return [file for path in paths for file in (path.iterdir() if path.is_dir() else (path,))]


def _fill(folder: Path, room: int) -> None:
    free = os.statvfs(folder)
    with (folder / BALLAST).open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - room)))


def _limit(size: int) -> Callable[[], None]:
    """Files of the command started with it can't grow beyond a size."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
