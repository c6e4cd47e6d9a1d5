"""Networks on disk: a folder with config.json and model.safetensors. No pickle is ever loaded."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from gammacaps._version import __version__
from gammacaps.errors import InputError
from gammacaps.files import new_folder, read_json, write_json, write_whole, writing
from gammacaps.models.presets import from_config, shapes_of, to_config
from gammacaps.models.protocol import Model
from gammacaps.models.shipped import stored_at

CONFIG, WEIGHTS = "config.json", "model.safetensors"
FORMAT = 1


def save(model: Model, folder: str | Path, *, overwrite: bool = False) -> None:
    """Writes config.json and model.safetensors into a new folder.

    >>> import gammacaps
    >>> gammacaps.save(gammacaps.create("small"), "runs/untrained")
    """
    if not isinstance(model, Model):
        raise InputError(f"save takes a network of gammacaps, not a {type(model).__name__}: use torch.save for others.")
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"A run's folder is named by its path, not by a {type(folder).__name__}.")
    with new_run(Path(folder), overwrite=overwrite) as temporary:
        write_config(temporary, {"model": to_config(model)})
        write_weights(temporary, model.state_dict())


def new_run(folder: Path, *, overwrite: bool = False) -> contextlib.AbstractContextManager[Path]:
    """`new_folder` for a run, which with `overwrite` replaces another run, and nothing else."""
    return new_folder(folder, check_old=_refuse_other_than_runs if overwrite else None)


def _refuse_other_than_runs(folder: Path) -> None:
    with writing(folder):
        here = (Path.cwd(), *Path.cwd().parents, Path.home(), *Path.home().parents)
    if not is_run(folder) or folder in here:
        raise InputError(f"{folder} is not a run's folder, so it is not overwritten: choose another folder.")


def is_run(folder: Path) -> bool:
    """Whether a folder holds the config.json of a network of ours."""
    try:
        config = read_json(folder / CONFIG)
    except InputError:
        return False
    return isinstance(config, dict) and "gammacaps" in config and isinstance(config.get("model"), dict)


def load(name_or_folder: str | Path, *, device: str | torch.device = "cpu") -> Model:
    """The network of a run's folder or one that is shipped, with its weights, as float32 and in evaluation mode.

    >>> import gammacaps
    >>> gammacaps.load("fashion-mini").routing
    'sda'
    """
    folder, place = stored_at(name_or_folder), _device(device)
    config, path = read_config(folder)["model"], folder / WEIGHTS
    with naming(folder / CONFIG):
        shapes = shapes_of(config)
    # By the file's header, before anything is built: what does not fit costs no time and no memory.
    check_shapes(shapes, read_shapes(path), path)
    with naming(folder / CONFIG):
        model = from_config(config)
    fit_weights(model, read_tensors(path), path)
    return model.to(place).eval()


def _device(name: Any) -> torch.device:
    try:
        return torch.device(name)
    except (RuntimeError, TypeError):
        raise InputError(f"There is no device {name!r:.40}: use cpu, cuda or cuda:1.") from None


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Names the file that holds what is wrong."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_config(folder: Path, values: dict[str, Any]) -> None:
    """Writes config.json: these values, and by which format and version."""
    write_json(folder / CONFIG, {"format": FORMAT, "gammacaps": __version__, **values})


def read_config(folder: Path) -> dict[str, Any]:
    """A run's config.json, checked to be one."""
    if not folder.is_dir():
        raise InputError(f"There is no run folder '{folder}': give the folder that `gammacaps train --out` made.")
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} is not a run's folder (there is no file {CONFIG} in it): give one that is.")
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise InputError(f"{folder / CONFIG} does not describe a network (it has no 'model'): restore it.")
    if config.get("format") != FORMAT:
        raise InputError(
            f"{folder / CONFIG} is of format {config.get('format')}, but this version reads format {FORMAT}: "
            "use the version of gammacaps that wrote it."
        )
    return config


def write_weights(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Writes model.safetensors: tensors by their names in the network's state_dict."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(folder / WEIGHTS, to_bytes(plain))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file."""
    with _whole(path):
        return load_file(path)


def read_shapes(path: Path) -> dict[str, torch.Size]:
    """The names and shapes of its tensors, from the header alone."""
    with _whole(path), safe_open(path, "pt") as file:
        return {name: torch.Size(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118  no dict


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"There is no file {path}: the run was not saved, or the file was moved.") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is broken ({error}): restore it or train again.") from None


def check_shapes(wanted: Mapping[str, torch.Size], given: Mapping[str, torch.Size], path: Path) -> None:
    """Says which weights of a file do not fit a network."""
    for name, shape in wanted.items():
        if name not in given:
            raise InputError(f"{path} lacks the weights {name!r}: they do not fit the network in config.json.")
        if given[name] != shape:
            raise InputError(
                f"{path}: {name!r} has the shape {tuple(given[name])}, but the network in config.json "
                f"needs {tuple(shape)}: use the config.json that these weights were saved with."
            )
    extra = sorted(set(given) - set(wanted))
    if extra:
        raise InputError(f"{path} holds weights that the network in config.json does not have: {', '.join(extra)}.")


def fit_weights(module: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Puts tensors into a module, or says which does not fit."""
    shapes, given = ({name: t.shape for name, t in each.items()} for each in (module.state_dict(), tensors))
    check_shapes(shapes, given, path)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise InputError(f"{path}: {name!r} holds {tensor.dtype}, which are not weights: restore the file.")
        if not torch.isfinite(tensor).all():
            raise InputError(f"{path}: {name!r} holds a NaN or infinity: the file is broken, restore it.")
    module.load_state_dict(tensors)
