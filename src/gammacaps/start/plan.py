"""What is trained, for how long, and why: chosen by the pictures and by a few real steps on this machine."""

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gammacaps.data import DataSet, StoredSet
from gammacaps.names import PresetName
from gammacaps.runs.train_config import TrainConfig
from gammacaps.runs.typed_json import Misfit
from gammacaps.start.config import StartConfig
from gammacaps.training.batches import batch_of
from gammacaps.training.class_sets import class_sets
from gammacaps.training.learner import new_learner
from gammacaps.training.new_model import new_model
from gammacaps.training.sharing import Sharing
from gammacaps.training.step import Objective, take_step

LONGEST = {"cpu": 40, "cuda": 96}  # side of the pictures, unless told
LARGE = 48  # above that the residual encoder is the better one
DRAWN, PHOTO = 0.1, 8 / 255  # radii
PLAIN = 0.5  # share of pixels that are black or white in drawings
TIMED = 3  # steps, after one to warm up
FEWEST, EPOCHS = 400, 100  # steps: as many passes over the pictures are enough, if they are so many steps
SHORT = 300  # steps: with fewer hardly anything is learned
SPARE = 1.5  # the clock ends a training that takes so many times what was estimated


@dataclass(frozen=True)
class Choice:
    """The network and the attack, each with its reason."""

    preset: PresetName
    why_preset: str
    eps: float
    why_eps: str


@dataclass(frozen=True)
class Plan:
    """How both networks are trained: kept, so that an interrupted start goes on as it began."""

    preset: PresetName
    eps: float
    steps: int
    clean_seconds: float  # of all steps, as estimated
    robust_seconds: float
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.steps >= 1 and 0 < self.eps <= 1 and min(self.clean_seconds, self.robust_seconds) >= 0):
            raise Misfit(f"no training has {self.steps} steps at eps {self.eps}, and these seconds")


def choose(config: StartConfig, device: torch.device, images: Tensor) -> Choice:
    """The network by the machine and the pictures' size, the radius by what the pictures look like."""
    side = max(images.shape[2:])
    preset: PresetName = "small" if device.type == "cpu" else "residual" if side > LARGE else "deep"
    why = {
        "small": "made for a CPU",
        "deep": "the most robust, for small pictures on a GPU",
        "residual": f"for pictures of more than {LARGE} pixels on a GPU",
    }[preset]
    extreme = ((images < 0.05) | (images > 0.95)).float().mean().item()
    eps = DRAWN if extreme >= PLAIN else PHOTO
    plain = f"{extreme:.0%} of the pixels are black or white"
    why_eps = f"{plain}, as in drawings" if extreme >= PLAIN else f"only {plain}: usual for photographs"
    return Choice(
        config.preset or preset,
        "as you asked" if config.preset else why,
        config.eps or eps,
        "as you asked" if config.eps else why_eps,
    )


def training_config(config: StartConfig, data: str, plan: Plan, device: torch.device, *, robust: bool) -> TrainConfig:
    """How one of the networks is trained; on a CPU with an attack of two long steps."""
    gpu = device.type == "cuda"
    attack: dict[str, Any] = {"attack_steps": 10 if gpu else 2, "attack_step": (0.25 if gpu else 0.7) * plan.eps}
    seconds = plan.robust_seconds if robust else plan.clean_seconds
    return TrainConfig(
        data=data,
        preset=plan.preset,
        robust=robust,
        eps=plan.eps,
        **attack,
        eps_ramp=0.5,
        steps=plan.steps,
        minutes=max(SPARE * seconds, seconds + 30) / 60,
        batch=128 if gpu else 64,
        lr=3e-3,
        seed=config.seed,
        device=config.device,
        log_every=10,
        checkpoint_every=checkpoint_every(seconds, plan.steps),
    )


def checkpoint_every(seconds: float, steps: int) -> int:
    """Steps between checkpoints: about 10 seconds."""
    return max(10, round(10 * steps / max(seconds, 1e-6)))


def make_plan(config: StartConfig, data: DataSet | StoredSet, name: str, choice: Choice, device: torch.device) -> Plan:
    """As many steps for both networks as fit into the minutes, by timing some of either kind."""
    draft = Plan(choice.preset, choice.eps, 1, 1.0, 1.0)
    each = {
        robust: seconds_a_step(training_config(config, name, draft, device, robust=robust), data, device)
        for robust in (False, True)
    }
    fitting = int(60 * config.minutes / sum(each.values()))
    batches = max(1, len(data.labels) // (128 if device.type == "cuda" else 64))
    enough = max(FEWEST, EPOCHS * batches)
    steps = max(1, min(fitting, enough))
    notes = []
    if steps < SHORT:
        needed = SHORT * sum(each.values()) / 60
        notes.append(
            f"{steps} steps are few, and the networks may learn little: give --minutes {math.ceil(needed)} or more, or "
            "a smaller --size."
        )
    return Plan(choice.preset, choice.eps, steps, steps * each[False], steps * each[True], tuple(notes))


def seconds_a_step(config: TrainConfig, data: DataSet | StoredSet, device: torch.device) -> float:
    """The time of a real step of training, at the full radius: the median of some."""
    model = new_model(config, data)
    sets = class_sets(model, data) if config.gamma_weight() else {}
    model.to(device).train()
    learner = new_learner(config, model, device)
    sharing = Sharing(Objective(config, model, sets).to(device), min(config.batch, len(data.labels)))
    times = []
    for _ in range(1 + TIMED):
        index = batch_of(learner.step, len(data.labels), config)
        started = time.perf_counter()
        take_step(config, learner, data.images[index].to(device), data.labels[index].to(device), 1.0, sharing)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
        learner.step += 1
    return sorted(times[1:])[TIMED // 2]
