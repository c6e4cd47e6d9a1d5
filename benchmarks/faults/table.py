"""The table of faults, and its place in a page."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.faults.judge import Tried
from gammacaps.environment import describe_machine
from gammacaps.errors import InputError

BEGIN, END = "<!-- faults: the script writes from here -->", "<!-- faults: to here -->"


def table(tries: dict[str, list[Tried]]) -> str:
    """A row a kind of fault."""
    lines = ["| fault | tried | went on or said one sentence | taken | lost |", "| --- | --- | --- | --- | --- |"]
    for name, tried in tries.items():
        lost = sum(bool(one.lost) for one in tried)
        taken = sum(one.taken and not one.lost for one in tried)
        lines.append(f"| {name} | {len(tried)} | {len(tried) - lost - taken} | {taken} | {lost} |")
    return "\n".join(lines)


def losses(tries: dict[str, list[Tried]]) -> str:
    """What was lost, fault by fault; with the number of the try, which the seed repeats."""
    lines = [
        f"- {name}, {number}: {one.what}: {'; '.join(dict.fromkeys(one.lost))}"
        for name, tried in tries.items()
        for number, one in enumerate(tried, start=1)
        if one.lost
    ]
    return "\n".join(lines) or "Nothing was lost."


def about(options: str, seconds: float) -> str:
    """By which command, when, where and with what."""
    machine: dict[str, Any] = describe_machine("cpu")
    versions = f"gammacaps {machine['gammacaps']}, torch {machine['torch']}, Python {machine['python']}"
    where = f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"
    when = f"{datetime.now(UTC):%Y-%m-%d}, {seconds / 60:.1f} minutes"
    return f"`python -m benchmarks.faults {options}`: {when}, on {where}, {versions}."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def check_page(page: Path) -> None:
    """Refuses a page without a place for the table, before the work is done."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    if not 0 <= text.find(BEGIN) < text.find(END):
        raise InputError(f"{page} has no place for the table: it needs the lines {BEGIN} and {END}.")


def write_page(page: Path, parts: Sequence[str]) -> None:
    """Puts the table in its place."""
    check_page(page)
    text = page.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    middle = "\n\n".join(parts)
    page.write_text(f"{before}{BEGIN}\n{middle}\n{END}{after}", encoding="utf-8")
