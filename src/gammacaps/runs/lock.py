"""One training at a time in a run's folder. The lock is on the folder itself, and dies with its process."""

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError
from gammacaps.files import told


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a run's folder while the block runs, under whichever name it then has, or says that another process does.

    Where the system or the disk has no such locks, nothing is held.
    """
    handle = None
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:
        yield
        return
    try:
        # A folder may be replaced between the two steps, and then it is no longer the one that stands there.
        while handle is None or not _stands(handle, folder):
            if handle is not None:
                os.close(handle)
            with told(folder):
                handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"Another training is at work in {folder}: wait until it ends, stop it, or choose another folder."
                ) from None
            except OSError:  # such as on a network's disk
                break
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _stands(handle: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), folder.stat())
    except FileNotFoundError:
        return False
