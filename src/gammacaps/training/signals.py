"""Who asks a training to stop: a signal, or a reader of its output that went away."""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and saved its state."""


@dataclass
class StopRequests:
    """What has asked this process to stop after the step that it is at."""

    signals: list[int] = field(default_factory=list)
    unread: bool = False  # what it prints can't be written any more

    def count(self) -> int:
        return len(self.signals) + self.unread


@contextlib.contextmanager
def noted_signals(requests: StopRequests) -> Iterator[None]:
    """Notes the first signal that asks to stop; a second one stops at once.

    SIGINT is Ctrl-C, SIGTERM what `kill` and cluster managers send, SIGHUP a terminal that was closed; under `nohup`
    the last is ignored, and stays so.
    """
    wanted = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        wanted.append(signal.SIGHUP)

    def ask(number: int, frame: Any) -> None:
        if requests.signals:
            raise KeyboardInterrupt
        requests.signals.append(number)

    try:
        before = {number: signal.signal(number, ask) for number in wanted}
    except ValueError:  # not in the main thread, where signals can't be caught
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
