"""The run's folder is removed, replaced by a file or made read-only under a command that is at work in it."""

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.faults.disks import can_mount, disk, set_read_only
from benchmarks.faults.judge import Tried, ended_badly, leftovers
from benchmarks.faults.stage import RUN, Stage, copy_run, wait_for_moment

ASIDE = "aside"


@dataclass(frozen=True)
class Way:
    """How a folder is taken away, and how it is put back. True: it could be done."""

    name: str
    take: Callable[[Path], bool]
    put_back: Callable[[Path], object]


def _remove(here: Path) -> bool:
    """Put aside, which for the command is the same, so that one can see what it had written until then."""
    (here / ASIDE).mkdir()
    (here / RUN).rename(here / ASIDE / RUN)
    return True


def _replace(here: Path) -> bool:
    _remove(here)
    with contextlib.suppress(FileExistsError):  # it was faster
        (here / RUN).touch(exist_ok=False)
    return True


def _put_back(here: Path) -> None:
    path = here / RUN
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    (here / ASIDE / RUN).rename(path)


def _make_read_only(here: Path) -> bool:
    if can_mount():
        return set_read_only(here, True)
    (here / RUN).chmod(0o555)
    return True


def _make_writable(here: Path) -> None:
    if can_mount():
        set_read_only(here, False)
    else:
        (here / RUN).chmod(0o755)


WAYS = (
    Way("removed", _remove, _put_back),
    Way("replaced by a file", _replace, _put_back),
    Way("made read-only", _make_read_only, _make_writable),
)


def take_folder(stage: Stage, chance: Random) -> Tried:
    """The command ends with one sentence, or with its work saved somewhere; with the folder back it does its work."""
    # For root no folder is read-only, unless its whole disk is.
    way = chance.choice([one for one in WAYS if one.name != "made read-only" or can_mount() or os.geteuid() != 0])
    name = chance.choice(("resume", "evaluate", "audit", "report"))
    kind = stage.kind_for(name)
    assert kind is not None
    with stage.place() as here, disk(here) if can_mount() else contextlib.nullcontext():
        copy_run(kind, here, without=name)
        command = stage.start(name, here)
        wait_for_moment(stage, command, here, chance)
        taken = command.running() and way.take(here)
        ran = command.ended()
        lost = ended_badly(ran)
        places = [place for place in (here, here / ASIDE) if place.is_dir()]
        if ran.status == 0 and all(stage.wrong(name, place) for place in places):
            lost.append(f"{name} ended well, and its work is nowhere")
        if taken:
            way.put_back(here)
        if ran.status != 0:
            lost += ended_badly(stage.run(name, here))
        lost += stage.wrong(name, here) if ran.status != 0 else []
        lost += leftovers(here / RUN, here / RUN / "evaluation")
    # Where the command was faster there was no fault: another one then.
    return Tried(f"{way.name} under {name}", tuple(lost)) if taken or lost else take_folder(stage, chance)
