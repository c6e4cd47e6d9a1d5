"""How far work has come, on standard error: a bar or a rewritten line on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable
from typing import TypeAlias

from tqdm import tqdm

OnProgress: TypeAlias = Callable[[str, int, int], None]  # what is being done, how many are done, how many in all


def say(line: str) -> None:
    """Says at once what comes next, or what has just been done."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Where, how and how often the progress of one work is shown: each `every` seconds where there is no terminal.

    Called with a part of the work and how many of how many are done. `started` is the time at its start where the work
    has a clock of its own.
    """

    def __init__(
        self, unit: str = "images", *, quiet: bool = False, every: float = 10.0, started: float | None = None
    ) -> None:
        self.unit, self.quiet, self.every = unit, quiet, every
        self.terminal = sys.stderr.isatty()
        self.shown_at = time.monotonic() if started is None else started
        self.bar: tqdm[None] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        self.show(f"{what}: {done}/{total} {self.unit}")

    def show(self, line: str, *, now: float | None = None, always: bool = False) -> None:
        """A line, rewritten by the next on a terminal; elsewhere only if the last is old enough, or `always`."""
        now = time.monotonic() if now is None else now
        if self.quiet:
            return
        if self.terminal:
            print(f"\r{line}\033[K", end="\r", file=sys.stderr, flush=True)
        elif always or now - self.shown_at >= self.every:
            self.shown_at = now
            say(line)

    def open_bar(self, done: int, total: int | None) -> None:
        """On a terminal a bar instead of lines."""
        if self.terminal and not self.quiet:
            self.bar = tqdm(total=total, initial=done, unit=self.unit, dynamic_ncols=True)

    def advance(self) -> None:
        """One more is done."""
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def time_left(seconds: float | None) -> str:
    """The end of a line, where it is known how long the work will take."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f", {minutes}:{rest:02d} left"
