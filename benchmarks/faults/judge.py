"""What counts as lost: the way in which a command ended, and what it left behind, held against what is right."""

import itertools
import json
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

TRACEBACK = "Traceback (most recent call last)"
LEFT_OVER = re.compile(r"\..+\.[a-z0-9_]{8}|tmp[a-z0-9_]{8}")  # as tempfile names what is not yet whole
PASSING = ("run", "seconds", "machine", "sha256")  # of a file of results: what another run of the command may change


@dataclass(frozen=True)
class Ran:
    """A command as it ended: its exit status (None: it hung), its standard error, and the signal that we sent."""

    command: str
    status: int | None
    errors: str
    sent: int | None = None

    def sentence(self) -> str | None:
        """What it said to the user, where that is one sentence."""
        said = [line for line in self.errors.splitlines() if line.startswith("gammacaps: ")]
        return said[0].removeprefix("gammacaps: ") if len(said) == 1 else None


@dataclass(frozen=True)
class Tried:
    """One fault: what was done, what was lost by it, and whether a damage was taken that nobody can notice."""

    what: str
    lost: tuple[str, ...] = ()
    taken: bool = False


def ended_badly(ran: Ran) -> list[str]:
    """What is wrong with the end of a command. Fine are: success, one sentence and 2, and the end by our own signal."""
    if ran.status is None:
        return [f"{ran.command} hung"]
    if TRACEBACK in ran.errors:
        return [f"{ran.command}: traceback, {ran.errors.strip().splitlines()[-1][:160]}"]
    if ran.status == 0 or (ran.sent is not None and ran.status == -ran.sent):
        return []
    if ran.status < 0:
        return [f"{ran.command} died by {signal.Signals(-ran.status).name}"]
    if ran.status != 2 and not (ran.sent is not None and ran.status in (130, 128 + ran.sent)):
        return [f"{ran.command} ended with status {ran.status}"]
    return [] if ran.sentence() is not None else [f"{ran.command} ended with {ran.status} and without one sentence"]


def unequal(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> list[str]:
    """The names of tensors that are not the same, bit for bit."""
    common = set(first) & set(second)
    differ = {name for name in common if _bits(first[name]) != _bits(second[name])}
    return sorted(differ | (set(first) ^ set(second)))


def _bits(tensor: Tensor) -> tuple[str, tuple[int, ...], bytes]:
    return str(tensor.dtype), tuple(tensor.shape), tensor.contiguous().numpy().tobytes()


def rows_of(path: Path) -> list[Any]:
    """The lines of metrics.jsonl; None for one that can't be read."""
    rows: list[Any] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            rows.append(None)
    return rows


def metrics_wrong(rows: Sequence[Any], right: Sequence[Any], stops: int = 0) -> list[str]:
    """Each step once, in order, with the figures of an unbroken run; the seconds may differ.

    A training that is asked to stop writes a line for the step at which it does, which an unbroken one may not have.
    """
    if disorder := out_of_order(rows):
        return disorder
    wanted = {row["step"]: plain(row) for row in right}
    written = {row["step"]: plain(row) for row in rows}
    missing, more = set(wanted) - set(written), set(written) - set(wanted)
    if missing or len(more) > stops:
        return [f"metrics.jsonl lacks {len(missing)} lines and has {len(more)} more"]
    differ = [step for step in wanted if wanted[step] != written[step]]
    return [f"metrics.jsonl differs at step {differ[0]}"] if differ else []


def out_of_order(rows: Sequence[Any]) -> list[str]:
    """Lines of metrics that are broken, doubled or in the wrong order."""
    steps = [row["step"] for row in rows if isinstance(row, dict) and isinstance(row.get("step"), int)]
    if len(steps) < len(rows):
        return ["metrics.jsonl has a broken line"]
    falls = any(later <= step for step, later in itertools.pairwise(steps))
    return ["metrics.jsonl has a step twice or out of order"] if falls else []


def plain(value: Any) -> Any:
    """A JSON value without what differs from run to run."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name not in PASSING}
    return [plain(part) for part in value] if isinstance(value, list) else value


def leftovers(*folders: Path) -> list[str]:
    """Files that are not whole, in these folders."""
    paths = (path for folder in folders if folder.is_dir() for path in folder.iterdir())
    return [f"{path.name} was left over" for path in paths if LEFT_OVER.fullmatch(path.name)]


def unreadable(path: Path) -> list[str]:
    """Why a file of a run is not whole."""
    try:
        if path.suffix == ".safetensors":
            load_file(path)
        elif path.suffix == ".json":
            json.loads(path.read_bytes())
        elif path.suffix == ".jsonl" and None in rows_of(path):
            return [f"{path.name} has a broken line"]
    except (OSError, ValueError, SafetensorError) as error:
        return [f"{path.name} is not whole ({type(error).__name__})"]
    return []
