"""The folder that `gammacaps start` writes to: its own. Pictures and other folders are never touched."""

import contextlib
import dataclasses
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.files import folders_above, make_folder, read_json, write_json, writing
from gammacaps.locks import FolderLock, locked
from gammacaps.runs.typed_json import Misfit, read_as
from gammacaps.start.config import StartConfig
from gammacaps.start.plan import Plan

STATE, DATA, CLEAN, ROBUST, LIST = "start.json", "data", "clean", "robust", "pictures.txt"
FORMAT = 1


@dataclass(frozen=True)
class State:
    """start.json: what was asked for, of which pictures, and how it is trained once that is known."""

    format: int
    folder: str
    pictures: str  # by which it is seen that they have changed
    options: StartConfig
    plan: Plan | None = None


def check_place(folder: Path, out: Path) -> None:
    """Refuses an output folder that is, holds or lies in the picture folder, or holds what no start has made."""
    here, there = folder.resolve(), out.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise InputError(
            f"{out} can't be the output folder for {folder}, which is only read: choose one beside it with --out."
        )
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise InputError(f"{out} is no folder: choose another place with --out.")
    if out.exists() and any(out.iterdir()) and not (out / STATE).is_file():
        raise InputError(f"{out} holds something that no start has made: choose another folder with --out.")


@contextlib.contextmanager
def taken(folder: Path, out: Path, config: StartConfig) -> Iterator[State]:
    """The state of an earlier start with the same options, or a new one, while this process alone writes to `out`.

    What is made in the block goes again where the block refuses before there is a plan to go on by.
    """
    check_place(folder, out)
    with folders_above(out):
        with writing(out):
            made = make_folder(out)
        # Only who has the lock may remove it: another start may work in a folder that this one made.
        with locked(out) as lock, _taken_back(out, lock) if made else contextlib.nullcontext():
            yield _begun(folder, out, config)


@contextlib.contextmanager
def _taken_back(out: Path, lock: FolderLock) -> Iterator[None]:
    """Removes the folder that is locked where the block refuses before there is a plan."""
    try:
        yield
    except InputError:
        if lock.stands_at(out) and not _has_plan(out):
            shutil.rmtree(out, ignore_errors=True)
        raise


def _begun(folder: Path, out: Path, config: StartConfig) -> State:
    """The state that is there, if it is of the same start, or a new one, which is written."""
    state = read_state(out)
    if state is None:
        state = State(FORMAT, str(folder.resolve()), fingerprint(folder), config)
        write_state(out, state)
    _check_same(state, folder, out, config)
    return state


def read_state(out: Path) -> State | None:
    """What start.json says; None where there is none yet."""
    if not (out / STATE).exists():
        return None
    try:
        state = read_as(State, read_json(out / STATE))
        if state.format != FORMAT:
            raise Misfit(f"it is of format {state.format}")
    except (Misfit, InputError) as error:
        raise InputError(f"{out / STATE} is not of a start ({error}): choose another folder with --out.") from None
    return state


def _has_plan(out: Path) -> bool:
    state = read_state(out)
    return state is not None and state.plan is not None


def write_state(out: Path, state: State) -> None:
    write_json(out / STATE, dataclasses.asdict(state))


def _check_same(state: State, folder: Path, out: Path, config: StartConfig) -> None:
    if state.folder != str(folder.resolve()):
        raise InputError(f"{out} was begun with the pictures in {state.folder}: choose another folder with --out.")
    for field in dataclasses.fields(StartConfig):
        begun, now = getattr(state.options, field.name), getattr(config, field.name)
        if begun != now:
            raise InputError(
                f"{out} was begun with {field.name} {begun}, not {now}: give the same options to go on, or choose "
                "another folder with --out."
            )


def fingerprint(folder: Path) -> str:
    """Of the names, sizes and times of all files."""
    known = hashlib.blake2b(digest_size=16)
    with contextlib.suppress(OSError):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                seen = path.stat()
                line = f"{path.relative_to(folder)}\0{seen.st_size}\0{seen.st_mtime_ns}\n"
                known.update(line.encode(errors="replace"))
    return known.hexdigest()
