"""The learning pass of a step on a GPU, recorded once and replayed: losses and the gradients of the weights."""

from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.ops.routing.choice import plain_wanted
from gammacaps.replay.model_state import fingerprint, why_not_recorded
from gammacaps.replay.recording import Recording


class RecordedLosses:
    """The losses of batches of one size, and with them the weights' gradients; new memory for the weights is noticed.

    `objective.losses(**tensors)` is what is recorded: all that changes from step to step is a tensor.
    """

    def __init__(self, objective: Any, model: nn.Module) -> None:
        self.objective, self.model = objective, model
        self.given: dict[str, Tensor] = {}
        self.state: tuple[object, ...] = ()
        self.recording: Recording | None = None

    def __call__(self, **tensors: Tensor) -> dict[str, Tensor]:
        """The losses by their names; every weight's `grad` is then that of "loss", None where it has none."""
        state = (*fingerprint(self.model), *((name, tensor.shape, tensor.dtype) for name, tensor in tensors.items()))
        if self.recording is None or self.state != state:
            self.given = {name: tensor.clone() for name, tensor in tensors.items()}
            self.recording, self.state = Recording(self._losses, next(iter(tensors.values())).device), state
        for name, tensor in tensors.items():
            self.given[name].copy_(tensor)
        values = self.recording.replay()[: len(self.names)]
        for weight, gradient in zip(self.model.parameters(), self.gradients, strict=True):
            weight.grad = gradient
        return {name: value.clone() for name, value in zip(self.names, values, strict=True)}

    def _losses(self) -> tuple[Tensor, ...]:
        weights = list(self.model.parameters())
        with torch.enable_grad():
            values = self.objective.losses(**self.given)
            gradients = torch.autograd.grad(values["loss"], weights, allow_unused=True)
        self.gradients = [g if g is None else _laid_out_as(w, g) for w, g in zip(weights, gradients, strict=True)]
        self.names = tuple(values)
        return (*(value.detach() for value in values.values()), *(g for g in self.gradients if g is not None))


def _laid_out_as(weight: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in the memory order of its weight, as optimizers take it."""
    return gradient if gradient.stride() == weight.stride() else torch.empty_like(weight).copy_(gradient)


def recorded_losses(objective: Any, model: nn.Module, device: torch.device) -> RecordedLosses | None:
    """The learning pass for replaying, where this network's can be; None elsewhere."""
    if device.type != "cuda" or plain_wanted() or why_not_recorded(model) is not None:
        return None
    return RecordedLosses(objective, model)
