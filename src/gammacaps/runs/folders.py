"""The folders of the runs that a command names, where it will write."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.files import check_can_write
from gammacaps.models.shipped import run_folder


@contextlib.contextmanager
def run_folders(
    runs: Sequence[Path], files: Sequence[str] = (), folder: str | None = None, *, figures: bool = False
) -> Iterator[tuple[Path, ...]]:
    """Runs' folders, shipped networks being copied to theirs, if `files` and a `folder` can be written there.

    With `figures` they are where new figures belong. For that, and what becomes of copies, see `run_folder`.
    """
    if not runs:
        raise InputError("Name the run's folder, such as runs/mine.")
    with contextlib.ExitStack() as copies:
        folders = tuple(copies.enter_context(run_folder(run, figures=figures)) for run in runs)
        for run in folders:
            check_can_write(run, files, folder)
        yield folders
