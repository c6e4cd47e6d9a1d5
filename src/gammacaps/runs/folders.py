"""The folders of the runs that a command names, where it will write."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.files import check_can_write
from gammacaps.models.shipped import copy_taken_back, run_folder


def run_folders(
    runs: Sequence[Path], files: Sequence[str] = (), folder: str | None = None, *, figures: bool = False
) -> tuple[Path, ...]:
    """Runs' folders, shipped networks being copied to theirs, if `files` and a `folder` can be written there.

    With `figures` they are where new figures belong: see `run_folder`.
    """
    if not runs:
        raise InputError("Name the run's folder, such as runs/mine.")
    folders = tuple(run_folder(run, figures=figures) for run in runs)
    for run in folders:
        check_can_write(run, files, folder)
    return folders


@contextlib.contextmanager
def copies_taken_back(runs: Sequence[Path], *, figures: bool = False) -> Iterator[None]:
    """Where the block refuses, copies that `run_folders` made in it and that got no figures go again."""
    with contextlib.ExitStack() as stack:
        for run in runs:
            stack.enter_context(copy_taken_back(run, figures=figures))
        yield
