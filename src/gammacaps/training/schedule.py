"""How long training is, and how the learning rate and the attack's radius and steps change as it goes on."""

import math
from dataclasses import dataclass

from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.learner import Learner


@dataclass(frozen=True)
class Length:
    """The length of a training, one of its limits at least being given; and where to leave off for this time."""

    steps: int | None
    seconds: float | None
    until: int | None = None  # a step from where it can be resumed

    def share(self, learner: Learner) -> float:
        """How much of training is done, from 0 to 1, by whichever limit is nearer."""
        shares = [learner.step / self.steps] if self.steps is not None else []
        if self.seconds is not None:
            shares.append(learner.seconds / self.seconds)
        return max(shares)

    def reached(self, learner: Learner) -> bool:
        """Whether there is no step left to take."""
        return self.share(learner) >= 1 or (self.until is not None and learner.step >= self.until)


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


def step_size(config: TrainConfig, progress: float) -> float:
    """The length of the attack's steps, which shrinks with its eps."""
    eps = radius(config, progress)
    if config.attack_steps == 1:
        return 1.25 * eps  # FGSM-RS (Wong, Rice and Kolter, 2020)
    return config.attack_step * (eps / config.eps if config.eps else 0)
