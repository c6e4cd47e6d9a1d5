"""Rows of figures: as a table that a person can read, and as lines of a CSV file."""

import csv
import datetime
import importlib.metadata
import importlib.util
import io
import subprocess
from pathlib import Path
from typing import Any

import torch

from gammacaps.environment import describe_machine
from gammacaps.errors import InputError
from gammacaps.files import append_line

MACHINE = ("date", "gammacaps", "commit", "device_name", "torch", "triton", "python", "cuda")
MEASURED = {
    "median_ms": ("median ms", ".3f"),
    "q1_ms": ("q1", ".3f"),
    "q3_ms": ("q3", ".3f"),
    "repeats": ("repeats", "d"),
    "peak_mib": ("peak MiB", ".0f"),
    "floor_share": ("of floor", ".2f"),
    "ratio_to_compiled": ("to compiled", ".3f"),
    "ratio_to_eager": ("to eager", ".3f"),
}
COLUMNS = (*MACHINE, "network", "task", "way", "batch", *MEASURED)


def machine(device: torch.device) -> dict[str, Any]:
    """When and where: device, versions and commit."""
    triton = importlib.metadata.version("triton") if importlib.util.find_spec("triton") else None
    more = {"date": datetime.date.today().isoformat(), "commit": commit(), "triton": triton, "cuda": torch.version.cuda}
    known = describe_machine(str(device)) | more
    return {name: known[name] for name in MACHINE}


def commit() -> str | None:
    """The commit of this code, "-dirty" where it has changed since; None outside its repository."""

    def git(*arguments: str) -> str:
        folder = Path(__file__).parent
        return subprocess.check_output(["git", *arguments], cwd=folder, text=True, stderr=subprocess.DEVNULL).strip()

    try:
        if git("rev-parse", "--show-prefix") != "src/gammacaps/bench/":  # someone else's repository
            return None
        return git("rev-parse", "--short", "HEAD") + ("-dirty" if git("status", "--porcelain", "--", "..") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def table(rows: list[dict[str, Any]]) -> str:
    """One line a row, a blank line before each task; no columns that are empty."""
    if not rows:
        return "Nothing was timed."
    versions = [f"{name} {rows[0][name]}" for name in ("gammacaps", "torch", "triton", "cuda") if rows[0][name]]
    lines = [", ".join([rows[0]["device_name"], *versions, rows[0]["date"]]), ""]
    shown = {name: how for name, how in MEASURED.items() if any(row[name] is not None for row in rows)}
    lines.append(f"{'':<42}{'batch':>6}" + "".join(f"{title:>12}" for title, _ in shown.values()))
    before = None
    for row in rows:
        if (row["task"], row["network"], row["batch"]) != before:
            before = row["task"], row["network"], row["batch"]
            lines.append("")
        cells = ["-" if row[name] is None else format(row[name], how) for name, (_, how) in shown.items()]
        known = f"{row['task']:<22}{row['network']:<10.9}{row['way']:<10}{row['batch']:>6}"
        lines.append(known + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


def check_columns(path: Path) -> bool:
    """Whether the file holds rows already; one sentence where they are of other columns."""
    try:
        with path.open(encoding="utf-8") as file:
            header = file.readline().strip()
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read as CSV ({error}): choose another file with --out.") from None
    if header and header != ",".join(COLUMNS):
        raise InputError(f"{path} has other columns than this benchmark writes: choose another file with --out.")
    return bool(header)


def append(rows: list[dict[str, Any]], path: Path) -> None:
    """Adds the rows to a CSV file, which is made with a header where there is none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not check_columns(path):
        writer.writeheader()
    for row in rows:
        writer.writerow({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})
    if rows:
        append_line(path, text.getvalue().rstrip("\n"))
