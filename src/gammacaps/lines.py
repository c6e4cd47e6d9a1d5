"""A line of progress on standard error: rewritten on a terminal, one each few seconds elsewhere."""

import sys
import time


class Lines:
    """Called with what is being done and how many of how many are done."""

    def __init__(self, quiet: bool, unit: str = "images") -> None:
        self.quiet, self.unit, self.terminal, self.last = quiet, unit, sys.stderr.isatty(), time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.quiet:
            return
        line = f"{what}: {done}/{total} {self.unit}"
        if self.terminal:
            print(f"\r{line}\033[K", end="\r", file=sys.stderr, flush=True)
        elif time.monotonic() - self.last > 10:
            self.last = time.monotonic()
            print(line, file=sys.stderr, flush=True)
