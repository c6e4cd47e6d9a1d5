"""A run's folder while it is trained in: locked by the first process, which alone writes to it."""

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from gammacaps.distributed.processes import Processes
from gammacaps.errors import InputError
from gammacaps.files import folders_above
from gammacaps.locks import FolderLock
from gammacaps.models.folder import WEIGHTS, new_run, write_config
from gammacaps.training.checkpoint import CHECKPOINT


class HeldFolder:
    """The folder, made or locked within a `with` block. All processes call the same methods in the same order.

    One that was made goes again, with what was made above it, where the block refuses before it has saved anything.
    """

    def __init__(self, path: Path, processes: Processes) -> None:
        self.path, self.processes = path, processes
        self.lock: FolderLock | None = None  # of the first process
        self._made = False
        self._above = contextlib.ExitStack()  # the folders above one that was made

    def make(self, config: dict[str, Any], *, overwrite: bool) -> None:
        """A new folder with its config.json, locked before it has its name."""

        def make() -> None:
            self._above.enter_context(folders_above(self.path))
            with new_run(self.path, overwrite=overwrite) as temporary:
                write_config(temporary, config)
                self.lock = FolderLock(temporary)
            self._made = True

        self.processes.first(make)

    def take(self) -> None:
        """Locks a folder that is there."""

        def take() -> None:
            self.lock = FolderLock(self.path)

        self.processes.first(take)

    def write(self, what: Callable[..., None], *values: Any) -> None:
        """`what(folder, *values)` by the first process, if the folder is still the one that was locked."""

        def write() -> None:
            if self.lock is not None:
                self.lock.check(self.path)
            what(self.path, *values)

        self.processes.first(write)

    def __enter__(self) -> "HeldFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, InputError):
                self._take_back()
        finally:
            if self.lock is not None:
                self.lock.close()
            self._above.__exit__(kind, error, traceback)

    def _take_back(self) -> None:
        """Removes a folder that this process made, still holds, and saved nothing in."""
        # Another process may have taken the name before ours could, or since.
        ours = self._made and self.lock is not None and self.lock.stands_at(self.path)
        if ours and not any((self.path / saved).exists() for saved in (CHECKPOINT, WEIGHTS)):
            shutil.rmtree(self.path, ignore_errors=True)
