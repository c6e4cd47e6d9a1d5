"""config.json: what a run says of its network, its training, its data and its machine, checked."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError
from gammacaps.models.folder import CONFIG, read_config
from gammacaps.runs.train_config import TrainConfig, config_from
from gammacaps.runs.typed_json import Misfit, read_as


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """The data that a network was trained on."""

    name: str | None = None
    source: str | None = None
    class_names: tuple[str, ...] | None = None
    train_images: int | None = None
    # By which the data are known again; older runs have none of these.
    image_shape: tuple[int, int, int] | None = None
    labels: str | None = None  # their hash
    brightness: tuple[float, ...] | None = None  # of some images from all over the set
    skipped: tuple[str, ...] | None = None  # files that could not be read, where they were to be left out


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """All of config.json. A network that was saved without a training has `format`, `gammacaps` and `model` alone."""

    format: int
    gammacaps: str = ""
    model: dict[str, Any]
    train: TrainConfig | None = None
    data: DataFacts = field(default_factory=DataFacts)
    machine: dict[str, Any] = field(default_factory=dict)
    class_sets: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)  # that hidden capsules learned
    launch: str | None = None  # by which torchrun's restart knows its own run
    # Of weights that were made ready to be shipped:
    precision: str | None = None
    scores_moved: float | None = None
    trained_steps: int | None = None
    measured_on: str | None = None


def run_config(folder: Path) -> tuple[RunConfig, dict[str, Any]]:
    """A run's config.json as its dataclass, and as the plain values that stand in the file."""
    stored = read_config(folder)
    train = stored.get("train")
    try:
        # {} is what a network pushed to the Hub has that was never trained here.
        training = None if train in (None, {}) else config_from(train)
        if training is not None and training.gamma_weight() and "gamma" not in stored["train"]:
            training = replace(training, gamma=0.0)  # runs of older versions learned without it, and go on so
        config = read_as(RunConfig, {name: value for name, value in stored.items() if name != "train"})
        _check_words(config)
    except (Misfit, InputError) as error:
        words = str(error).rstrip(".")
        raise InputError(f"{folder / CONFIG} does not describe a run ({words}): restore it.") from None
    return _with(config, training), stored


def _with(config: RunConfig, train: TrainConfig | None) -> RunConfig:
    return RunConfig(**{**vars(config), "train": train})


def _check_words(config: RunConfig) -> None:
    classes, names = config.model.get("classes"), config.data.class_names
    if names is not None and len(names) != classes:
        raise Misfit(f"the data have {len(names)} class names, and the network has {classes} classes")
    for name, value in config.machine.items():
        if not isinstance(value, str | int | None):
            raise Misfit(f"machine.{name} must be a text or a whole number, not {value!r:.40}")
    for count in (config.trained_steps, config.data.train_images):
        if count is not None and count < 0:
            raise Misfit(f"{count} is fewer than none")
