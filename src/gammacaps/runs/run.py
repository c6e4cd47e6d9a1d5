"""A run: the folder of a trained network, or one that comes with the package. All its files are read here."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gammacaps.data import DataSet, StoredSet, is_imported, load_set, open_set
from gammacaps.errors import InputError
from gammacaps.files import read_json
from gammacaps.models import Model, load
from gammacaps.models.folder import CONFIG
from gammacaps.models.shipped import stored_at
from gammacaps.runs.audits import Audit
from gammacaps.runs.beyond import Beyond
from gammacaps.runs.config import RunConfig, run_config
from gammacaps.runs.inputs import LayerInputs, read_inputs
from gammacaps.runs.metrics import read_metrics
from gammacaps.runs.results import Results
from gammacaps.runs.typed_json import Misfit, read_as
from gammacaps.runs.warnings import TrainingWarning, read_warnings

RESULTS, AUDIT, BEYOND = "results.json", "audit.json", "beyond.json"
EPS = 0.1  # a radius where no run says one


class Run:
    """One run's config, network, data, metrics, results and audit, each read and checked when it is asked for."""

    def __init__(self, name_or_folder: str | Path) -> None:
        self.folder = stored_at(name_or_folder)

    @functools.cached_property
    def _read(self) -> tuple[RunConfig, dict[str, Any]]:
        return run_config(self.folder)

    def checked(self) -> "Run":
        """Itself, once its config.json has been read."""
        _ = self.config
        return self

    @property
    def config(self) -> RunConfig:
        return self._read[0]

    @property
    def stored(self) -> dict[str, Any]:
        """The plain values of config.json, checked: what another config.json is written from."""
        return self._read[1]

    def stored_with(self, *, train: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        """The same with another length of training, and with what is known of the data now: older runs say less."""
        return {**self.stored, "train": train, "data": {**self.stored.get("data", {}), **data}}

    def model(self, device: str | torch.device = "cpu") -> Model:
        """The network with its weights."""
        return load(self.checked().folder, device=device)

    def data_name(self, asked: str | None = None, *, trust: bool = False) -> str:
        """The data to look at a run with: what is asked for, else what its card or its training names.

        A run may come from a stranger, and to import a Dataset is to run code: it is done where the user named the
        Dataset, or trusts the run.
        """
        if asked is not None:
            return asked
        if self.names_data is None:
            raise InputError(f"{self.folder} does not say what it was trained on: name a data set with --data.")
        refuse_import(self.names_data, self.folder / CONFIG, trust=trust)
        return self.names_data

    @property
    def names_data(self) -> str | None:
        """The data that its card or its training names."""
        train = self.config.train
        return self.config.measured_on or (train.data if train else None)

    def open_data(
        self, split: str, asked: str | None = None, *, data_dir: str | None = None, trust: bool = False
    ) -> DataSet | StoredSet:
        """One split of those data, at the size that the network was trained with; a stored set stays on disk."""
        return open_set(self.data_name(asked, trust=trust), split, **self._reading(data_dir))

    def load_data(
        self, split: str, asked: str | None = None, *, data_dir: str | None = None, trust: bool = False
    ) -> DataSet:
        """The same, read into memory."""
        return load_set(self.data_name(asked, trust=trust), split, **self._reading(data_dir))

    def _reading(self, data_dir: str | None) -> dict[str, Any]:
        """How its training has read the data."""
        return {"data_dir": self.data_dir(data_dir), "size": self.size, "skip_unreadable": self.skip_unreadable}

    def data_dir(self, asked: str | None) -> str | None:
        return asked or (self.config.train.data_dir if self.config.train else None)

    @property
    def size(self) -> int | None:
        return self.config.train.size if self.config.train else None

    @property
    def skip_unreadable(self) -> bool:
        """Whether files of its data that can't be read are left out."""
        return self.config.train is not None and self.config.train.skip_unreadable

    @property
    def radius(self) -> float | None:
        """The radius (L-inf) that the network was trained at; None where it was not trained under such an attack."""
        return self.radius_in("linf")

    def radius_in(self, norm: str) -> float | None:
        """The same for the norm that it was trained in."""
        train = self.config.train
        return train.eps if train is not None and train.robust and train.eps and train.norm == norm else None

    def last_metrics(self) -> dict[str, Any] | None:
        """The last whole line of metrics.jsonl."""
        rows = read_metrics(self.folder)
        return rows[-1] if rows else None

    def warnings(self) -> tuple[TrainingWarning, ...]:
        """What its training has warned of."""
        return read_warnings(self.folder)

    @property
    def steps(self) -> int | None:
        """How long the network was trained, for a run may have been stopped early; None where the run does not say."""
        last = self.last_metrics()
        return self.config.trained_steps if last is None else last["step"]  # the former of shipped weights

    def results(self) -> dict[str, Any] | None:
        """The figures that `gammacaps evaluate` wrote; None where there are none."""
        return self._figures(RESULTS, Results, "evaluate")

    def audit(self) -> dict[str, Any] | None:
        """What `gammacaps audit` wrote; None where it did not."""
        return self._figures(AUDIT, Audit, "audit")

    def beyond(self) -> dict[str, Any] | None:
        """What `gammacaps evaluate --beyond` wrote; None where it did not."""
        return self._figures(BEYOND, Beyond, "evaluate --beyond")

    def inputs(self) -> dict[str, LayerInputs]:
        """The inputs that were generated for its capsules, by layer, as far as the folder keeps them."""
        return read_inputs(self.folder)

    def _figures(self, name: str, kind: type[Results] | type[Audit] | type[Beyond], verb: str) -> dict[str, Any] | None:
        path = self.folder / name
        if not path.exists():
            return None
        figures = read_json(path)
        try:
            read_as(kind, figures)
        except Misfit as error:
            raise InputError(
                f"{path} holds no figures that this version knows ({error}): make it again with gammacaps {verb}."
            ) from None
        return dict(figures)


def refuse_import(name: str, where: Path, *, trust: bool, can_name: bool = True) -> None:
    """Refuses to import a Dataset that a file names and the user did not, since its module's code would run."""
    if not trust and is_imported(name):
        way = f"name it yourself with --data {name}, or add --trust" if can_name else "add --trust"
        raise InputError(f"{where} names the data {name}, a Dataset whose code would run: if you trust it, {way}.")


def common_radius(runs: Sequence[Run]) -> float:
    """One for runs that are compared: the first that one of them was trained at."""
    return next((run.radius for run in runs if run.radius is not None), EPS)
