"""inputs.safetensors: inputs generated for a network's capsules, kept in its run's folder and so made only once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.files import parse_json, write_whole

INPUTS = "inputs.safetensors"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class LayerInputs:
    """What was generated for capsules of a layer; each tensor has a row a capsule."""

    made: Mapping[str, Any]  # of which weights, and by which options
    capsules: tuple[int, ...]
    tensors: Mapping[str, Tensor]


def read_inputs(folder: Path) -> dict[str, LayerInputs]:
    """By layer; empty where nothing was kept."""
    path = folder / INPUTS
    if not path.exists():
        return {}
    try:
        with safe_open(path, "pt") as file:
            told = parse_json((file.metadata() or {}).get("inputs", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no dict
        if told["format"] != FORMAT:
            raise ValueError(f"it is of format {told['format']}")
        return {layer: _layer(layer, about, tensors) for layer, about in told["layers"].items()}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} holds no inputs that this version knows ({error}): remove it, and they are generated anew."
        ) from None


def _layer(layer: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> LayerInputs:
    capsules = tuple(int(capsule) for capsule in about["capsules"])
    own = {name.removeprefix(f"{layer}/"): t for name, t in tensors.items() if name.startswith(f"{layer}/")}
    if any(len(tensor) != len(capsules) for tensor in own.values()):
        raise ValueError(f"it has not one row for each of the capsules of {layer}")
    return LayerInputs(dict(about["made"]), capsules, own)


def write_inputs(folder: Path, layers: Mapping[str, LayerInputs]) -> None:
    """Puts these in place of what was kept."""
    about = {layer: {"made": dict(each.made), "capsules": list(each.capsules)} for layer, each in layers.items()}
    tensors = {f"{layer}/{name}": t.contiguous() for layer, each in layers.items() for name, t in each.tensors.items()}
    told = {"inputs": json.dumps({"format": FORMAT, "layers": about}, sort_keys=True)}
    write_whole(folder / INPUTS, to_bytes(tensors, told))
