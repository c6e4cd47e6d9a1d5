"""What was measured, part by part, kept on disk, so that an evaluation can stop and go on."""

import hashlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError
from gammacaps.files import read_json, write_json, writing


class KeptParts:
    """Plain values by the name and settings of what was measured, for one network on one data set.

    A file a part under `folder`; without a folder it forgets everything at the end. What was measured with other
    weights is not used, and is replaced.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        weights: str = "",
        data: str = "",
        about: dict[str, Any] | None = None,
        deadline: float = float("inf"),
    ) -> None:
        self.folder, self.weights, self.data, self.deadline = folder, weights, data, deadline
        self.about = about or {}  # settings that all parts share
        self.complete = True  # whether all that was asked for is there

    def get(self, name: str, settings: dict[str, Any], measure: Callable[[], Any]) -> Any:
        """What was found before with these settings, else what `measure` finds; None where the time is over."""
        path = self._path(name, settings)
        if path is not None and path.exists() and (found := self._read(path)) is not None:
            return found["found"]
        if time.monotonic() > self.deadline:
            self.complete = False
            return None
        value = measure()
        if path is not None:
            with writing(path.parent):
                path.parent.mkdir(exist_ok=True)
            entry = {"part": name, "settings": {**self.about, **settings}, "weights": self.weights, "found": value}
            write_json(path, {"sha256": _hash(entry), "kept": entry})
        return value

    def _path(self, name: str, settings: dict[str, Any]) -> Path | None:
        if self.folder is None:
            return None
        words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        return self.folder / f"beyond-{words}-{_hash({**self.about, **settings})[:8]}-{self.data[:8]}.json"

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            content = read_json(path)
            entry = content["kept"]
            if content["sha256"] != _hash(entry):
                raise InputError("its content is not what was written")
        except (InputError, KeyError, TypeError):
            raise InputError(f"{path} is broken: delete it, and what it held is measured again.") from None
        return entry if entry["weights"] == self.weights else None


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
