"""What experiments keep: a file of JSON, a line for each training, that grows."""

import json
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The trainings that are there."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    except (OSError, ValueError) as error:
        raise InputError(f"{path} does not hold lines of JSON ({error}): name another file with --out.") from None
    if not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} holds something else than trainings: name another file with --out.")
    return rows
