"""What a person or a program sees while a network trains."""

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm


class Progress:
    """A bar on a terminal, a line each few seconds elsewhere, or JSON lines on standard output."""

    def __init__(
        self, total: int | None, seconds: float | None, start: int, *, as_json: bool, bar: bool = True
    ) -> None:
        self.total, self.seconds, self.as_json = total, seconds, as_json
        self.printed = 0.0
        self.unread = False  # training is then asked to stop, as by Ctrl-C
        self.bar = None
        if bar and not as_json and sys.stderr.isatty():
            self.bar = tqdm(total=total, initial=start, unit="step", dynamic_ncols=True)

    def step(self) -> None:
        if self.bar is not None:
            with self._noted():
                self.bar.update()

    def metrics(self, row: dict[str, Any]) -> None:
        """Shows a line of metrics."""
        with self._noted():
            if self.as_json:
                print(json.dumps(row), flush=True)
            elif self.bar is not None:
                self.bar.set_postfix_str(f"{_words(row)}{_left(self._remaining(row))}")
            elif row["seconds"] - self.printed >= 5 or row["step"] == self.total:
                self.printed = row["seconds"]
                words = f"step {row['step']}{f'/{self.total}' if self.total else ''}  {_words(row)}"
                print(f"{words}{_left(self._remaining(row))}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            with self._noted():
                self.bar.close()

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Notes whether what is shown can be: not where its reader has gone, or a disk is full."""
        try:
            yield
        except OSError:
            self.unread = True

    def _remaining(self, row: dict[str, Any]) -> float | None:
        """Seconds left, by whichever limit comes first."""
        left = []
        if self.total is not None:
            left.append((self.total - row["step"]) * row["seconds"] / max(1, row["step"]))
        if self.seconds is not None:
            left.append(self.seconds - row["seconds"])
        return max(0.0, min(left)) if left else None


def _words(row: dict[str, Any]) -> str:
    kind = f"under attack (eps {row['eps']:.2g})" if row["eps"] else "clean"
    return f"loss {row['loss']:.4f}, accuracy {100 * row['accuracy']:.1f}% {kind}"


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f", {minutes}:{rest:02d} left"
