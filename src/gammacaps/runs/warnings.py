"""warnings.jsonl: what a training has warned of, a line each."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gammacaps.errors import InputError
from gammacaps.files import append_line, write_whole
from gammacaps.runs.typed_json import Misfit, read_as

WARNINGS = "warnings.jsonl"
Kind = Literal["chance", "attack", "overlearned"]


@dataclass(frozen=True)
class TrainingWarning:
    """At which step, what of, and the words that were said."""

    step: int
    kind: Kind
    words: str


def read_warnings(folder: Path) -> tuple[TrainingWarning, ...]:
    """The lines that are whole; none where there is no file."""
    try:
        lines = (folder / WARNINGS).read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise InputError(f"{folder / WARNINGS} can't be read ({error.strerror}): check what is there.") from None
    found = []
    for line in lines:
        try:
            found.append(read_as(TrainingWarning, json.loads(line)))
        except (ValueError, RecursionError, Misfit):  # half a line, of a process that was killed
            continue
    return tuple(found)


def add_warning(folder: Path, warning: TrainingWarning) -> None:
    append_line(folder / WARNINGS, json.dumps(asdict(warning)))


def forget_warnings_after(folder: Path, step: int) -> None:
    """Drops what an interrupted run has said after its last checkpoint."""
    if (folder / WARNINGS).exists():
        kept = [each for each in read_warnings(folder) if each.step <= step]
        write_whole(folder / WARNINGS, "".join(json.dumps(asdict(each)) + "\n" for each in kept).encode())
