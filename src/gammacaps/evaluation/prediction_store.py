"""What attacks made of each image, kept on disk as it is measured, so that an evaluation can stop and go on."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.distributed.processes import ALONE, Processes
from gammacaps.errors import InputError
from gammacaps.evaluation.specs import Spec
from gammacaps.files import read_json, write_json, writing
from gammacaps.runs.typed_json import Misfit, read_as


class PredictionStore:
    """Per attack: the class that each attacked image was taken for, by the image's place in the test set.

    A file a spec under `folder`; without a folder it forgets everything at the end. What was measured with other
    weights (their fingerprint is `weights`) is not used, and is replaced; each data set has files of its own. Of
    several processes the first reads and writes the files, and all know the same.
    """

    def __init__(
        self, folder: Path | None = None, *, weights: str = "", data: str = "", processes: Processes = ALONE
    ) -> None:
        if folder is not None and not (weights and data):
            raise InputError(
                "A store on disk needs the fingerprints of the weights and of the data: see fingerprint()."
            )
        self.folder, self.weights, self.data, self.processes = folder, weights, data, processes
        self.known: dict[str, dict[str, Any]] = {}

    def predicted(self, spec: Spec, places: Tensor) -> Tensor:
        """The classes of the attacked images at these places of the test set; -1 where an image was not attacked."""
        known = self._entry(spec)["predicted"]
        return torch.tensor([known.get(str(place), -1) for place in places.tolist()], dtype=torch.int64)

    def outside(self, spec: Spec) -> float:
        """By how much the attack left its ball or [0, 1] at most."""
        return self._entry(spec)["outside"]

    def seconds(self, spec: Spec) -> float:
        return self._entry(spec)["seconds"]

    def add(self, spec: Spec, places: Tensor, predicted: Tensor, outside: float, seconds: float) -> None:
        entry = self._entry(spec)
        entry["predicted"].update({str(p): c for p, c in zip(places.tolist(), predicted.tolist(), strict=True)})
        entry["outside"] = max(entry["outside"], outside)
        entry["seconds"] = round(entry["seconds"] + seconds, 3)
        self.processes.first(lambda: self._write(spec, entry))

    def _entry(self, spec: Spec) -> dict[str, Any]:
        if spec.key not in self.known:
            new = {"attack": spec.row(), "weights": self.weights, "predicted": {}, "outside": 0.0, "seconds": 0.0}
            kept: dict[str, Any] | None = self.processes.first(lambda: self._read(spec))
            self.known[spec.key] = kept or new
        return self.known[spec.key]

    def _read(self, spec: Spec) -> dict[str, Any] | None:
        if self.folder is None or not (path := self._path(spec)).exists():
            return None
        try:
            entry = read_kept(path)
        except (InputError, Misfit):
            raise InputError(f"{path} is broken: delete it, and what it held is measured again.") from None
        return entry if entry["weights"] == self.weights else None

    def _write(self, spec: Spec, entry: dict[str, Any]) -> None:
        if self.folder is not None:
            with writing(self.folder):
                self.folder.mkdir(exist_ok=True)
            write_json(self._path(spec), {"sha256": _hash(entry), "kept": entry})

    def _path(self, spec: Spec) -> Path:
        assert self.folder is not None
        return self.folder / f"{spec.key}-{self.data[:8]}.json"


@dataclasses.dataclass(frozen=True)
class StoredPredictions:
    """What one attack made of the images."""

    attack: dict[str, Any]
    weights: str
    predicted: dict[str, int]
    outside: float
    seconds: float

    def __post_init__(self) -> None:
        if not all(place.isdecimal() and kind >= 0 for place, kind in self.predicted.items()):
            raise Misfit("an image's place or class is no number of one")


@dataclasses.dataclass(frozen=True)
class PredictionFile:
    """A file of the store; those of older versions are a bare `StoredPredictions`."""

    sha256: str
    kept: StoredPredictions


def read_kept(path: Path) -> dict[str, Any]:
    """What a file of the store holds, as `PredictionStore` knows it; an answer that was changed since is noticed."""
    content = read_json(path)
    if isinstance(content, dict) and "predicted" in content:
        read_as(StoredPredictions, content)
        return content
    if read_as(PredictionFile, content).sha256 != _hash(content["kept"]):
        raise Misfit("its content is not what was written")
    return dict(content["kept"])


def _hash(entry: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()
