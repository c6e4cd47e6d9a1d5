"""One answer in the making: who waits for it, how far it is, and when to stop."""

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

Tick = Callable[[int, int], None]  # passes done and passes in all; raises where nobody waits any more
Call = Callable[[Tick], bytes]
Calls = Callable[[Sequence[Any]], Sequence[Call]]  # of questions that share a pass: makes it, and gives a call for each


class Stopped(Exception):
    """Nobody waits for this answer any more."""


class Job:
    """One answer in the making, for all who want it; each of them must leave."""

    def __init__(self, key: str, name: str, group: Hashable, question: Any, calls: Calls) -> None:
        self.key, self.name = key, name  # of its answer, and its own among the lane's jobs
        self.group, self.question, self.calls = group, question, calls
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.progress: tuple[int, int] | None = None
        self.wanted = 1
        self.stop = threading.Event()

    def leave(self) -> None:
        self.wanted -= 1
        if self.wanted == 0:
            self.stop.set()

    def tick(self, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Stopped
        self.progress = (done, total) if total else None
