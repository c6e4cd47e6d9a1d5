"""Networks on disk: a folder with config.json and model.safetensors. No pickle is ever loaded."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

import gammacaps
from gammacaps.errors import InputError
from gammacaps.files import new_folder, read_json, write_json, write_whole
from gammacaps.models.presets import Model, from_config, to_config
from gammacaps.models.shipped import stored_at

CONFIG, WEIGHTS = "config.json", "model.safetensors"
FORMAT = 1


def save(model: Model, folder: str | Path, *, overwrite: bool = False) -> None:
    """Writes config.json and model.safetensors into a new folder."""
    with new_folder(Path(folder), overwrite=overwrite) as temporary:
        write_config(temporary, {"model": to_config(model)})
        write_weights(temporary, model.state_dict())


def load(name_or_folder: str | Path, *, device: str | torch.device = "cpu") -> Model:
    """The network of a run's folder or one that is shipped, with its weights, as float32 and in evaluation mode."""
    folder = stored_at(name_or_folder)
    config = read_config(folder)
    try:
        model = from_config(config["model"])
    except InputError as error:
        raise InputError(f"{folder / CONFIG}: {error}") from None
    fit_weights(model, read_tensors(folder / WEIGHTS), folder / WEIGHTS)
    return model.to(device).eval()


def write_config(folder: Path, values: dict[str, Any]) -> None:
    write_json(folder / CONFIG, {"format": FORMAT, "gammacaps": gammacaps.__version__, **values})


def read_config(folder: Path) -> dict[str, Any]:
    """A run's config.json, checked to be one."""
    if not folder.is_dir():
        raise InputError(f"There is no run's folder {folder}: give the folder that `gammacaps train --out` made.")
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
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(folder / WEIGHTS, to_bytes(plain))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}: the run was not saved, or the file was moved.") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is broken ({error}): restore it or train again.") from None


def fit_weights(module: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Puts tensors into a module, or says which does not fit."""
    wanted = module.state_dict()
    for name, tensor in wanted.items():
        if name not in tensors:
            raise InputError(f"{path} lacks the weights {name!r}: they do not fit the network in config.json.")
        if tensors[name].shape != tensor.shape:
            raise InputError(
                f"{path}: {name!r} has the shape {tuple(tensors[name].shape)}, but the network in config.json "
                f"needs {tuple(tensor.shape)}: use the config.json that these weights were saved with."
            )
        if not tensors[name].is_floating_point():
            raise InputError(f"{path}: {name!r} holds {tensors[name].dtype}, which are no weights: restore the file.")
        if not torch.isfinite(tensors[name]).all():
            raise InputError(f"{path}: {name!r} holds a NaN or infinity: the file is broken, restore it.")
    extra = sorted(set(tensors) - set(wanted))
    if extra:
        raise InputError(f"{path} holds weights that the network in config.json does not have: {', '.join(extra)}.")
    module.load_state_dict(tensors)
