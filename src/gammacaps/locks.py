"""Locks of the system on files and folders, which die with the process that has them. Free of torch."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gammacaps.errors import InputError

PATIENCE = 1.0  # seconds for a folder that is being replaced to be there again


def take(handle: int, *, wait: bool) -> bool | None:
    """Locks an open file until it is closed: True, or False where another has it; None where there are no locks."""
    try:
        import fcntl  # only here, since there is none on Windows

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # the latter on some disks of a network
        return None
    return True


class FolderLock:
    """A folder that this process alone writes to, whatever its name has become."""

    def __init__(self, folder: Path) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError as error:
                if time.monotonic() > deadline:
                    raise InputError(f"There is no folder {folder} (any more): check the path.") from error
                time.sleep(0.01)
                continue
            except OSError as error:
                raise InputError(f"{folder} can't be opened ({error.strerror}): check what is there.") from None
            taken = take(self.handle, wait=False)
            if taken and not self.stands_at(folder):  # it was replaced between the two steps
                self.close()
                continue
            break
        if taken is False:
            self.close()
            raise InputError(
                f"Another training is at work in {folder}: wait until it ends, stop it, or choose another folder."
            )
        if taken is None:
            print(f"Note: nothing keeps another training out of {folder}: its disk has no locks.", file=sys.stderr)

    def stands_at(self, folder: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(self.handle), folder.stat())
        except OSError:
            return False

    def check(self, folder: Path) -> None:
        """Refuses to write to a path at which another folder stands by now, or none."""
        if not self.stands_at(folder):
            raise InputError(
                f"{folder} can't be written (it was removed, moved or replaced since this training began): what was "
                "saved lies where it was moved to."
            )

    def close(self) -> None:
        os.close(self.handle)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[FolderLock]:
    """Locks a folder for the length of the block, even if it is renamed. An InputError where another process has it."""
    lock = FolderLock(folder)
    try:
        yield lock
    finally:
        lock.close()
