"""A training run's state on disk: one safetensors file, written whole or not at all."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from gammacaps.data.fingerprint import fingerprint
from gammacaps.errors import InputError
from gammacaps.files import write_whole
from gammacaps.models.folder import WEIGHTS, fit_weights
from gammacaps.names import shipped_names
from gammacaps.runs.typed_json import Misfit, read_as
from gammacaps.training.learner import Best, Learner

CHECKPOINT = "checkpoint.safetensors"


def write_checkpoint(folder: Path, learner: Learner) -> None:
    """Writes what a training goes on from: weights, their running mean, the best, Adam's moments, step and seconds."""
    tensors = {f"model.{name}": tensor for name, tensor in learner.model.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in learner.average.items()}
    for name, parameter in learner.model.named_parameters():
        state = learner.optimizer.state.get(parameter, {})  # empty for a weight that has never had a gradient
        tensors |= {f"adam.{moment}.{name}": state[moment] for moment in state}
    header = CheckpointHeader(learner.step, learner.seconds)
    if learner.best is not None:
        tensors |= {f"best.{name}": tensor for name, tensor in learner.best.weights.items()}
        header = replace(header, best_step=learner.best.step, best_right=learner.best.right)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = replace(header, sha256=_hash(plain, header))
    state = {name: value for name, value in vars(header).items() if value is not None}
    write_whole(folder / CHECKPOINT, to_bytes(plain, {"state": json.dumps(state)}))


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as it was read."""

    path: Path
    header: "CheckpointHeader"
    parts: dict[str, dict[str, Tensor]]  # "model", "average", "adam" and "best", each by the weights' names


def check_can_go_on(folder: Path) -> None:
    """Refuses a trained network without a checkpoint: from the start again, training would replace its weights."""
    shipped = not folder.exists() and str(folder) in shipped_names()
    if shipped or ((folder / WEIGHTS).exists() and not (folder / CHECKPOINT).exists()):
        raise InputError(
            f"{folder} has weights but no {CHECKPOINT}, without which training can't go on (networks that come with "
            "gammacaps have none): train a run of your own, and resume that."
        )


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """A run's checkpoint; None where there is none yet."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            state = _state(file)
            tensors = {key: file.get_tensor(key) for key in sorted(file.keys())}
    except (SafetensorError, OSError, ValueError) as error:
        raise _broken(path, str(error)) from None
    if state.sha256 is not None and state.sha256 != _hash(tensors, state):
        raise _broken(path, "its content is not what was written")
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "adam": {}, "best": {}}
    for key, tensor in tensors.items():
        part, _, name = key.partition(".")
        if part not in parts or not tensor.is_floating_point() or not torch.isfinite(tensor).all():
            raise _broken(path, f"{key:.60} is not finite, or nothing that a checkpoint has")
        parts[part][name] = tensor
    return Checkpoint(path, state, parts)


def put_back(stored: Checkpoint, learner: Learner) -> None:
    """Puts a checkpoint's state into a learner, or says what does not fit."""
    parts, path, header = stored.parts, stored.path, stored.header
    fit_weights(learner.model, parts["model"], path)
    best = parts["model"] if header.best_step is not None else {}
    for part, wanted in (("average", learner.average), ("best", best)):
        if {name: t.shape for name, t in parts[part].items()} != {name: t.shape for name, t in wanted.items()}:
            raise InputError(f"The checkpoint {path} does not fit its config.json: restore either of them.")
    adam = _moments(stored, learner)
    learner.step, learner.seconds = header.step, header.seconds
    if header.best_step is not None and header.best_right is not None:
        now = learner.model.state_dict()
        weights = {name: torch.empty_like(now[name]).copy_(tensor) for name, tensor in parts["best"].items()}
        learner.best = Best(weights, header.best_step, header.best_right)
    for name, tensor in learner.average.items():
        tensor.copy_(parts["average"][name])
    for parameter, moments in adam.items():
        # In the memory order of the weight, so that an interrupted run rounds as an unbroken one does.
        learner.optimizer.state[parameter] = {
            "step": moments["step"].to(_step_device(learner.optimizer, parameter)),
            **{name: torch.empty_like(parameter).copy_(moments[name]) for name in ("exp_avg", "exp_avg_sq")},
        }


def step_of(folder: Path) -> int:
    """The step at which a run's checkpoint stands; 0 where there is none yet, or none that can be read."""
    try:
        with safe_open(folder / CHECKPOINT, "pt") as file:
            return _state(file).step
    except (SafetensorError, OSError, ValueError):
        return 0


def best_of(folder: Path) -> tuple[int, float] | None:
    """After which step the weights were measured that a run keeps, and the share of held-back images that stood.

    None where none were held back, or the checkpoint can't be read.
    """
    try:
        with safe_open(folder / CHECKPOINT, "pt") as file:
            header = _state(file)
    except (SafetensorError, OSError, ValueError):
        return None
    return None if header.best_step is None or header.best_right is None else (header.best_step, header.best_right)


@dataclass(frozen=True)
class CheckpointHeader:
    """What stands in the file's header beside the tensors."""

    step: int
    seconds: float
    sha256: str | None = None  # of all of it; older checkpoints have none
    best_step: int | None = None  # of the best weights, where images were held back to measure them
    best_right: float | None = None

    def __post_init__(self) -> None:
        if self.step < 0 or self.seconds < 0:
            raise Misfit(f"it stands at step {self.step} after {self.seconds} seconds")
        if (self.best_step is None) != (self.best_right is None):
            raise Misfit("it says only half of what its best weights are")


def _state(file: Any) -> CheckpointHeader:
    """A ValueError where there is none."""
    try:
        return read_as(CheckpointHeader, json.loads((file.metadata() or {}).get("state", "")))
    except RecursionError:
        raise ValueError("its header is no table") from None


def _hash(tensors: dict[str, Tensor], state: CheckpointHeader) -> str:
    names = sorted(tensors)
    best = [] if state.best_step is None else [state.best_step, state.best_right]
    header = json.dumps([names, state.step, float(state.seconds), *best])
    return hashlib.sha256(f"{header}{fingerprint(*(tensors[name] for name in names))}".encode()).hexdigest()


def _moments(stored: Checkpoint, learner: Learner) -> dict[nn.Parameter, dict[str, Tensor]]:
    """Adam's state by weight: of each weight all of it, or nothing where it has never had a gradient."""
    left = dict(stored.parts["adam"])
    moments: dict[nn.Parameter, dict[str, Tensor]] = {}
    for name, parameter in learner.model.named_parameters():
        own = {moment: left.pop(f"{moment}.{name}", None) for moment in ("step", "exp_avg", "exp_avg_sq")}
        there = {moment: tensor for moment, tensor in own.items() if tensor is not None}
        if not there:
            continue
        wanted = {"step": torch.Size([]), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        if {moment: tensor.shape for moment, tensor in there.items()} != wanted or (there["exp_avg_sq"] < 0).any():
            raise InputError(
                f"The checkpoint {stored.path} does not fit its config.json (Adam's state of {name}): restore either."
            )
        moments[parameter] = there
    if left or not moments:
        raise InputError(f"The checkpoint {stored.path} does not fit its config.json: restore either of them.")
    return moments


def _broken(path: Path, reason: str) -> InputError:
    return InputError(f"The checkpoint {path} is broken ({reason}): restore it, or delete it to start the run again.")


def _step_device(optimizer: torch.optim.Adam, parameter: Tensor) -> torch.device:
    """Adam counts steps on the weight's device only where it is fused."""
    return parameter.device if optimizer.defaults["fused"] else torch.device("cpu")
