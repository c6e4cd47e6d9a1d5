"""A run's folder while it is trained in: locked by the first process, which alone writes to it."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from gammacaps.distributed.processes import Processes
from gammacaps.locks import FolderLock
from gammacaps.models.folder import new_run, write_config


class HeldFolder:
    """The folder, made or locked within a `with` block. All processes call the same methods in the same order."""

    def __init__(self, path: Path, processes: Processes) -> None:
        self.path, self.processes = path, processes
        self.lock: FolderLock | None = None  # of the first process

    def make(self, config: dict[str, Any], *, overwrite: bool) -> None:
        """A new folder with its config.json, locked before it has its name."""

        def make() -> None:
            with new_run(self.path, overwrite=overwrite) as temporary:
                write_config(temporary, config)
                self.lock = FolderLock(temporary)

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
        if self.lock is not None:
            self.lock.close()
