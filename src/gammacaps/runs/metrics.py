"""metrics.jsonl: a line for every few steps of training. A machine that went down may have left half of one."""

import json
import sys
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError
from gammacaps.files import append_line, write_whole
from gammacaps.runs.typed_json import LARGEST

METRICS = "metrics.jsonl"


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines that are whole, each a table of numbers with its step and its seconds; none where there is no file."""
    return [row for _, row in _whole_lines(folder / METRICS)]


def add_metrics(folder: Path, row: dict[str, Any]) -> None:
    """Adds a line to metrics.jsonl: what was measured at one step."""
    append_line(folder / METRICS, json.dumps(row))


def forget_metrics_after(folder: Path, step: int) -> None:
    """Drops the lines that an interrupted run wrote after its last checkpoint."""
    path = folder / METRICS
    if path.exists():
        whole = _whole_lines(path)
        lines = [line for line in path.read_bytes().splitlines() if line.strip()]
        # A process that was killed leaves half a line at the end; others are damage.
        half = bool(lines) and (not whole or whole[-1][0].encode() != lines[-1])
        broken = len(lines) - len(whole) - half
        if broken > 0:
            count = "a line" if broken == 1 else f"{broken} lines"
            print(f"Note: {count} of {path} can't be read, and will be left out.", file=sys.stderr)
        kept = [line for line, row in whole if row["step"] <= step]
        write_whole(path, "".join(line + "\n" for line in kept).encode())


def _whole_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}): check what is there.") from None
    whole = []
    for line in lines:
        try:
            text = line.decode()
            row = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if _is_row(row):
            whole.append((text, row))
    return whole


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not {"step", "seconds"} <= set(row):
        return False
    numbers = all(type(value) in (int, float) and abs(value) < LARGEST for value in row.values())
    return numbers and type(row["step"]) is int and row["step"] >= 0
