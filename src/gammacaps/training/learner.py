"""The state of a training: all of it that changes from step to step, and so all that a checkpoint keeps."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gammacaps.models import Model
from gammacaps.runs.train_config import TrainConfig


@dataclass(frozen=True, eq=False)
class Best:
    """The best weights so far, by images that were held back."""

    weights: dict[str, Tensor]
    step: int  # after which they were measured
    right: float  # share of the held-back images that stood


@dataclass
class Learner:
    """All that changes in training: weights, their running mean, Adam's moments, how far and how long, the best."""

    model: Model
    optimizer: torch.optim.Adam
    average: dict[str, Tensor]  # empty where there is no running mean
    step: int = 0
    seconds: float = 0.0
    best: Best | None = None  # None where nothing was measured yet

    def take_into_average(self, decay: float) -> None:
        """Moves the running mean of the weights toward what they are now, if there is one."""
        # Early on the mean must forget the initial weights sooner than its decay says.
        decay = min(decay, (1 + self.step) / (10 + self.step))
        for key, value in self.model.state_dict().items() if self.average else ():
            self.average[key].lerp_(value, 1 - decay)

    def weights(self) -> dict[str, Tensor]:
        """The weights as they are now, to use: the running mean where there is one."""
        return self.average or dict(self.model.state_dict())

    def kept(self) -> dict[str, Tensor]:
        """The weights that a run keeps: the best that were measured, else those of now."""
        return self.weights() if self.best is None else self.best.weights


def new_learner(config: TrainConfig, model: Model, device: torch.device) -> Learner:
    """What training starts from, for a network on its device."""
    return Learner(
        model,
        new_optimizer(config, model, fused=device.type == "cuda"),
        {name: tensor.clone() for name, tensor in model.state_dict().items()} if config.ema else {},
    )


def new_optimizer(config: TrainConfig, model: nn.Module, *, fused: bool) -> torch.optim.Adam:
    """Adam; with weight decay AdamW (Loshchilov and Hutter, 2019), which shrinks weights beside Adam's own step."""
    if not config.weight_decay:
        return torch.optim.Adam(model.parameters(), lr=config.lr, fused=fused)
    weights = matrices(model)
    others = [p for p in model.parameters() if all(p is not weight for weight in weights)]
    groups = [{"params": weights, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=config.lr, fused=fused)


def matrices(model: nn.Module) -> list[nn.Parameter]:
    """The weights that multiply: of convolutions, routing and linear layers; no biases, no scales of channels."""
    return [p for name, p in model.named_parameters() if p.ndim > 1 and name.rpartition(".")[2] != "bias"]
