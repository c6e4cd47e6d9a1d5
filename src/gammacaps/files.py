"""Files written whole or not at all, and JSON read without trusting it."""

import contextlib
import glob
import io
import json
import math
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from gammacaps.errors import InputError
from gammacaps.locks import locked, take

DEEPEST = 100  # levels of a JSON file; ours have fewer than 10, and Python's own functions fail at some 1,000
LARGEST = 2**64  # whole numbers from here on fit into no tensor
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # in no path, and in no UTF-8
LOCK, NEW, OLD = "lock", "new", "old"  # what is in the hidden folder of `new_folder`


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file under a temporary name and renames it, so that a reader never sees half of it.

    What a killed process has left of an earlier attempt at the same file is removed first.
    """
    with writing(path):
        _remove_halves(path)
        half, file = _locked_half(path)
        try:
            with file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                if os.name == "posix":
                    half.replace(path)  # while it is locked, or another process might take it for a leftover
            if os.name != "posix":
                half.replace(path)  # elsewhere an open file can't be renamed
        except BaseException:
            half.unlink(missing_ok=True)
            raise


def _locked_half(path: Path) -> tuple[Path, IO[bytes]]:
    """A hidden file beside `path`, open and locked, with the permissions that the user's umask leaves."""
    while True:
        half = _hidden(path)
        file = half.open("xb")
        take(file.fileno(), wait=True)
        if half.exists():
            return half, file
        file.close()  # another process took it for a leftover before it was locked


def _remove_halves(path: Path) -> None:
    """Deletes hidden files that `_locked_half` made for `path` in a process that is dead."""
    for half in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
        try:
            lock = os.open(half, os.O_WRONLY)
        except OSError:  # another user's, a folder, or gone
            continue
        if take(lock, wait=False):
            half.unlink(missing_ok=True)
        os.close(lock)


def write_json(path: Path, value: Any) -> None:
    """Writes plain values as JSON, whole or not at all; NaN and infinity are refused."""
    write_whole(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def write_figure(path: Path, figure: Any) -> None:
    """A matplotlib figure, as what the path's ending says."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:], dpi=130)
    write_whole(path, buffer.getvalue())


def append_line(path: Path, line: str) -> None:
    """Adds one line to a log; what could not be written whole is taken back."""
    with writing(path), path.open("ab") as file:
        before = file.tell()
        try:
            file.write(line.encode() + b"\n")
            file.flush()
        except OSError:
            file.truncate(before)
            raise


def read_json(path: Path) -> Any:
    """The value in a JSON file, or one sentence about why there is none."""
    try:
        return parse_json(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} can't be read ({_reason(error)}): check the path and its permissions.") from None
    except ValueError as error:
        raise InputError(f"{path} can't be read as JSON ({error}): restore it or make it again.") from None


def parse_json(text: str) -> Any:
    """The value of a JSON text, or a ValueError with a few words on why it has none.

    Stricter than `json.loads`: what is only found out when it is used or printed is refused here, such as numbers that
    are not finite or too large, text that is not valid Unicode, and lists in lists without end.
    """
    if text.startswith("\ufeff"):
        raise ValueError("it starts with a byte order mark: save it as UTF-8 without one")
    try:
        value = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= 20 else LARGEST)
    except (RecursionError, MemoryError):
        raise ValueError("it is nested too deeply or too large") from None
    check_plain(value)
    return value


def check_plain(value: Any) -> None:
    """A ValueError where a value that was read has numbers, text or depths that fail later, as in `parse_json`."""
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                below += node.keys()
                below += node.values()
            elif isinstance(node, list):
                below += node
            elif isinstance(node, str) and UNWRITABLE.search(node):
                raise ValueError("it holds text with characters that can't be written")
            elif isinstance(node, float) and not math.isfinite(node):
                raise ValueError("it holds a number that is not finite")
            elif isinstance(node, int) and abs(node) >= LARGEST:
                raise ValueError("it holds a whole number that is too large")
        level = below
    if level:
        raise ValueError("it is nested too deeply")


def check_can_write(folder: Path, files: Iterable[str] = (), inner: str | None = None) -> None:
    """Refuses a folder that can't take these files, and a folder of the name `inner`, before they cost work."""
    with writing(folder), tempfile.TemporaryFile(dir=folder):
        pass
    wrong = [folder / name for name in files if (folder / name).is_dir()]
    if inner is not None and (folder / inner).exists() and not (folder / inner).is_dir():
        wrong.append(folder / inner)
    for path in wrong:
        kind, wanted = ("folder", "file") if path.is_dir() else ("file", "folder")
        raise InputError(f"{path} is a {kind}, where a {wanted} is to be written: move it away.")


@contextlib.contextmanager
def new_folder(path: Path, *, check_old: Callable[[Path], None] | None = None) -> Iterator[Path]:
    """A temporary folder that takes the name `path` once the block ends without an error.

    An existing `path` is refused, unless `check_old` is given and raises nothing: then it is deleted once the new
    folder stands in its place. What a killed process has left of an earlier attempt at the same path is removed first.
    """
    with writing(path):
        path = Path(path).resolve()
        _remove_left_folders(path)
        exists = path.exists()
    if exists:
        if check_old is None:
            raise InputError(
                f"{path} exists already: choose another folder, or replace it with --overwrite (in Python "
                "overwrite=True)."
            )
        check_old(path)
    with contextlib.ExitStack() as replaced:
        replaced.enter_context(folders_above(path))
        if exists:  # nobody trains in a folder that is replaced
            replaced.enter_context(locked(path))
        with writing(path):
            hidden, lock = _locked_folder(path)
        yield from _filled(path, hidden, lock, exists)


@contextlib.contextmanager
def folders_above(path: Path, levels: int | None = None) -> Iterator[None]:
    """The folders above a path, or the last `levels` of them, made as far as they are missing.

    Those that this very block made go again where it refuses, as far as nothing lies in them.
    """
    made: list[Path] = []
    try:
        with writing(path):
            for folder in reversed([above for above in path.parents[:levels] if not above.exists()]):
                if make_folder(folder):
                    made.append(folder)
        yield
    except InputError:
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def make_folder(path: Path) -> bool:
    """Makes a folder where there is none; whether it was made here, which no look beforehand could tell for sure."""
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise
        return False
    return True


def _filled(path: Path, hidden: Path, lock: int, exists: bool) -> Iterator[Path]:
    new, old = hidden / NEW, hidden / OLD
    try:
        with writing(path):
            new.mkdir()
        yield new
        with writing(path):
            if exists:
                path.rename(old)
            new.rename(path)  # fails if someone else has made `path` in the meantime
    finally:
        with writing(path):
            if old.exists() and not path.exists():
                old.rename(path)
            shutil.rmtree(hidden, ignore_errors=True)
            os.close(lock)


def _hidden(path: Path) -> Path:
    """A name beside `path` that nobody has."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _locked_folder(path: Path) -> tuple[Path, int]:
    """A hidden folder beside `path`, and the handle of a file in it that stays locked while this process lives."""
    while True:
        hidden = _hidden(path)
        hidden.mkdir()
        try:
            lock = os.open(hidden / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another process took the folder for a leftover before it was locked
            continue
        except OSError:
            hidden.rmdir()
            raise
        take(lock, wait=True)
        if (hidden / LOCK).exists():
            return hidden, lock
        os.close(lock)


def _remove_left_folders(path: Path) -> None:
    """Removes hidden folders that `_locked_folder` made for `path` in a process that is dead."""
    for hidden in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
        try:
            lock = os.open(hidden / LOCK, os.O_RDWR)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                hidden.rmdir()  # killed before it was locked, so it is empty; else it is none of ours
            continue
        except OSError:  # another user's
            continue
        if take(lock, wait=False):
            if (hidden / OLD).exists() and not path.exists():  # killed between the two renames
                (hidden / OLD).rename(path)
            shutil.rmtree(hidden, ignore_errors=True)
        os.close(lock)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the system's error about a path into one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} can't be written ({_reason(error)}): free space or choose another place.") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
