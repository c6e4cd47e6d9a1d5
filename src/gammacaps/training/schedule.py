"""How the learning rate and the attack's radius change as training goes on."""

import math

from gammacaps.runs.train_config import TrainConfig


def learning_rate(config: TrainConfig, step: int, progress: float) -> float:
    """The rate of a step, at `progress` from 0 (start) to 1 (end)."""
    if config.schedule == "cosine":
        return config.lr * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    if config.schedule == "decay":
        return config.lr * 0.96 ** (step / 20_000)
    return config.lr


def radius(config: TrainConfig, progress: float) -> float:
    """The attack's eps: growing linearly over the first `eps_ramp` of training."""
    return config.eps if progress >= config.eps_ramp else config.eps * progress / config.eps_ramp
