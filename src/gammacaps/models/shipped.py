"""Networks that come with the package: where they lie, and how a verb gets a run's folder of one."""

import contextlib
import filecmp
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gammacaps.errors import InputError, did_you_mean
from gammacaps.files import folders_above, new_folder, write_whole
from gammacaps.names import SHIPPED, shipped_names

RUNS = Path("runs")  # under the working directory: where a shipped network is copied to, since verbs write beside it
FILES = ("config.json", "model.safetensors", "README.md")
FIGURES = ("results.json", "audit.json", "beyond.json")  # what was measured of it, as far as it was
OWN = "-own"  # ends the name of the folder with what a user measures of a shipped network


def stored_at(name_or_folder: str | Path) -> Path:
    """Where a network lies, to be read: an existing folder, else the package's folder of a shipped one."""
    names = ", ".join(shipped_names())
    if not isinstance(name_or_folder, str | os.PathLike):
        raise InputError(f"A network is named by its run's folder or as one of {names}, not by {name_or_folder!r:.40}.")
    folder = Path(name_or_folder)
    if folder.is_dir():
        return folder
    if str(name_or_folder) in shipped_names():
        return SHIPPED / str(name_or_folder)
    raise InputError(
        f"There is no run folder '{folder}', and no network of that name comes with gammacaps"
        f"{did_you_mean(name_or_folder, shipped_names())}: give the folder that "
        f"`gammacaps train --out` made, or one of {names}."
    )


@contextlib.contextmanager
def run_folder(name_or_folder: str | Path, *, figures: bool = False) -> Iterator[Path]:
    """The folder of a run, to be written to: an existing one, else a shipped network's copy under runs/.

    The copy is made at the first use, whole or not at all. Where `figures` are to be written, a shipped network's stay
    as they came: the folder is another copy beside it, without them, for the user's own.

    A copy that was made here goes again where the block refuses, unless something was added to it. One that stays is
    told of at the block's end.
    """
    folder = stored_at(name_or_folder)
    copy = _copy_for(folder, figures=figures)
    if copy is None:
        yield folder
        return
    source, folder, files = copy
    with folders_above(folder):
        made = _make_copy(source, folder, files)
        try:
            yield folder
        except InputError:
            if _is(folder, made) and {file.name for file in folder.iterdir()} <= set(files):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            if _is(folder, made):
                print(f"Copied the network {source.name} that comes with gammacaps to {folder}.", file=sys.stderr)


def _copy_for(folder: Path, *, figures: bool) -> tuple[Path, Path, tuple[str, ...]] | None:
    """Of a shipped network where it lies, where its copy is to be, and of which files; None for a folder to be used."""
    source = shipped_as(folder)
    if source is None or (folder != source and not figures):
        return None
    copy = RUNS / source.name if folder == source else folder
    if not figures:
        return source, copy, tuple(file.name for file in source.iterdir())
    return source, copy.with_name(copy.name + OWN), FILES


def shipped_as(folder: Path) -> Path | None:
    """The shipped network that a folder is, or is a copy of under its name; None for any other."""
    if folder.parent == SHIPPED:
        return folder
    source = SHIPPED / folder.name
    return source if folder.name in shipped_names() and is_copy(folder, source) else None


def _make_copy(source: Path, folder: Path, files: Sequence[str]) -> os.stat_result | None:
    """Copies these files of a shipped network where there is no folder yet: the copy, by which it is known again.

    None where a copy is there already. What was made is known from making it: another process may be as quick.
    """
    made = None
    if not folder.exists():
        try:
            with new_folder(folder) as temporary:
                for file in files:
                    write_whole(temporary / file, (source / file).read_bytes())
                copy = temporary.stat()
            made = copy
        except InputError:
            if not folder.exists():  # else another process has made it in the meantime
                raise
    if not is_copy(folder, source):
        raise InputError(
            f"{folder} is not the network {source.name} that comes with gammacaps: to use what is there give {folder}, "
            "to use the shipped one move it away."
        )
    return made


def _is(folder: Path, made: os.stat_result | None) -> bool:
    """Whether the folder of that name is still the one that was made, if one was."""
    try:
        return made is not None and os.path.samestat(made, folder.stat())
    except OSError:
        return False


def is_copy(folder: Path, source: Path) -> bool:
    """Whether a folder holds the very weights of a shipped network, and says the same of it."""
    return all(
        (folder / name).is_file() and filecmp.cmp(folder / name, source / name, shallow=False) for name in FILES[:2]
    )
