"""Files written whole or not at all."""

import contextlib
import glob
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file under a temporary name and renames it, so that a reader never sees half of it."""
    with told(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Deletes what `write_whole` had begun to write of these files when its process was killed."""
    for name in names:
        for half in folder.glob(f".{glob.escape(name)}.????????"):
            half.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    write_whole(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def write_figure(path: Path, figure: Any) -> None:
    """A matplotlib figure, as what the path's ending says."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:], dpi=130)
    write_whole(path, buffer.getvalue())


def append_line(path: Path, line: str) -> None:
    """Adds one line to a log; what could not be written whole is taken back."""
    with told(path), path.open("ab") as file:
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
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} can't be read as JSON ({error}): restore it or make it anew.") from None


def check_can_write(folder: Path, files: Iterable[str] = (), inner: str | None = None) -> None:
    """Refuses a folder that can't take these files, and a folder of the name `inner`, before they cost work."""
    with told(folder), tempfile.TemporaryFile(dir=folder):
        pass
    wrong = [folder / name for name in files if (folder / name).is_dir()]
    if inner is not None and (folder / inner).exists() and not (folder / inner).is_dir():
        wrong.append(folder / inner)
    for path in wrong:
        kind, wanted = ("folder", "file") if path.is_dir() else ("file", "folder")
        raise InputError(f"{path} is a {kind}, where a {wanted} is to be written: move it away.")


@contextlib.contextmanager
def new_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder that takes the name `path` once the block ends without an error.

    An existing `path` is refused, unless `overwrite` is given and it is a run: then it is deleted once the new folder
    stands in its place.
    """
    path = Path(path).resolve()
    if path.exists():
        if not overwrite:
            raise InputError(f"{path} exists already: choose another folder, or add --overwrite to replace it.")
        if not is_run(path) or path in (Path.cwd(), *Path.cwd().parents, Path.home(), *Path.home().parents):
            raise InputError(f"{path} is not a run's folder, so it is not overwritten: choose another folder.")
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    try:
        yield temporary
        with told(path):
            temporary.chmod(0o755)
            if overwrite and path.exists():
                path.rename(old / path.name)
            temporary.rename(path)  # fails if someone else has made `path` in the meantime
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if (old / path.name).exists() and not path.exists():
            (old / path.name).rename(path)
        shutil.rmtree(old, ignore_errors=True)


def is_run(folder: Path) -> bool:
    """Whether a folder holds the config.json of a network of ours."""
    try:
        config = read_json(folder / "config.json")
    except InputError:
        return False
    return isinstance(config, dict) and "gammacaps" in config and isinstance(config.get("model"), dict)


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns the system's error about a path into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path} can't be written ({reason}): free space or choose another place.") from error
