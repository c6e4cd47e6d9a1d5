"""What an evaluation is told. Free of torch, so that help is instant."""

import math
from dataclasses import dataclass

from gammacaps.errors import InputError
from gammacaps.names import AttackLossName


@dataclass(frozen=True)
class EvaluateConfig:
    """How to evaluate. The defaults are the paper's: PGD of 40 steps of 0.01, and FGSM, at three radii."""

    data: str | None = None
    """Data set; without it the one that the network was trained on."""
    data_dir: str | None = None
    """Folder in which the named data sets lie."""
    limit: int | None = None
    """Use only the first so many test images (balanced over the classes)."""
    eps: tuple[float, ...] = (0.1, 0.3, 0.5)
    """Radii of the attacks, L-inf."""
    attack_step: float = 0.01
    """Length of PGD's steps."""
    attack_steps: int = 40
    """Number of PGD's steps."""
    restarts: int = 1
    """Random starts of PGD; the worst result of each image counts."""
    attack_loss: AttackLossName = "margin"
    """What the attacks make large."""
    seed: int = 0
    """Seed of the attacks' random starts."""
    batch: int = 250
    """Images a pass."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        for name, values in (("eps", self.eps), ("attack_step", (self.attack_step,))):
            wrong = [value for value in values if not 0 <= value < math.inf]
            if wrong:
                raise InputError(f"{name} must be 0 or more, not {wrong[0]}.")
        for name in ("attack_steps", "restarts", "batch", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}.")
