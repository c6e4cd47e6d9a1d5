"""A training run's state on disk: one safetensors file, written whole or not at all."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.files import write_whole
from gammacaps.models import Model
from gammacaps.models.stored import WEIGHTS, fit_weights
from gammacaps.names import shipped_names

CHECKPOINT = "checkpoint.safetensors"


@dataclass
class Learner:
    """All that changes in training: weights, their running mean, Adam's moments, how far and how long."""

    model: Model
    optimizer: torch.optim.Adam
    average: dict[str, Tensor]  # empty where there is no running mean
    step: int = 0
    seconds: float = 0.0

    def weights(self) -> dict[str, Tensor]:
        """The weights to use: the running mean where there is one."""
        return self.average or dict(self.model.state_dict())


def write_checkpoint(folder: Path, learner: Learner) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in learner.model.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in learner.average.items()}
    for name, parameter in learner.model.named_parameters():
        state = learner.optimizer.state.get(parameter, {})  # empty for a weight that has never had a gradient
        tensors |= {f"adam.{moment}.{name}": state[moment] for moment in state}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    state = {"step": learner.step, "seconds": learner.seconds}
    write_whole(folder / CHECKPOINT, to_bytes(plain, {"state": json.dumps(state)}))


@dataclass(frozen=True)
class Stored:
    """A checkpoint as it was read."""

    path: Path
    step: int
    seconds: float
    parts: dict[str, dict[str, Tensor]]  # "model", "average" and "adam", each by the weights' names


def check_can_go_on(folder: Path) -> None:
    """Refuses a trained network without a checkpoint: from the start again, training would replace its weights."""
    shipped = not folder.exists() and str(folder) in shipped_names()
    if shipped or ((folder / WEIGHTS).exists() and not (folder / CHECKPOINT).exists()):
        raise InputError(
            f"{folder} has weights but no {CHECKPOINT}, without which training can't go on (networks that come with "
            "gammacaps have none): train a run of your own, and resume that."
        )


def read_checkpoint(folder: Path) -> Stored | None:
    """A run's checkpoint; None where there is none yet."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "adam": {}}
    try:
        with safe_open(path, "pt") as file:
            state = json.loads(file.metadata()["state"])
            for key in file.keys():  # noqa: SIM118  a safetensors file is not iterable
                part, _, name = key.partition(".")
                parts[part][name] = file.get_tensor(key)
        return Stored(path, int(state["step"]), float(state["seconds"]), parts)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The checkpoint {path} is broken ({error!r}): restore it, or delete it to start the run again."
        ) from None


def put_back(stored: Stored, learner: Learner) -> None:
    """Puts a checkpoint's state into a learner."""
    parts, path = stored.parts, stored.path
    learner.step, learner.seconds = stored.step, stored.seconds
    fit_weights(learner.model, parts["model"], path)
    if set(parts["average"]) != set(learner.average) or not parts["adam"]:
        raise InputError(f"The checkpoint {path} does not fit its config.json: restore either of them.")
    for name, tensor in learner.average.items():
        tensor.copy_(parts["average"][name])
    for name, parameter in learner.model.named_parameters():
        if f"step.{name}" not in parts["adam"]:
            continue
        # In the memory order of the weight, so that an interrupted run rounds as an unbroken one does.
        learner.optimizer.state[parameter] = {
            "step": parts["adam"][f"step.{name}"].to(_step_device(learner.optimizer, parameter)),
            **{m: torch.empty_like(parameter).copy_(parts["adam"][f"{m}.{name}"]) for m in ("exp_avg", "exp_avg_sq")},
        }


def step_of(folder: Path) -> int:
    """The step at which a run's checkpoint stands; 0 where there is none yet."""
    try:
        with safe_open(folder / CHECKPOINT, "pt") as file:
            return int(json.loads(file.metadata()["state"])["step"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        return 0


def _step_device(optimizer: torch.optim.Adam, parameter: Tensor) -> torch.device:
    """Adam counts steps on the weight's device only where it is fused."""
    return parameter.device if optimizer.defaults["fused"] else torch.device("cpu")
