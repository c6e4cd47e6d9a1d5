"""Accuracy under attack, image by image: each attack, and the worst case over all of them."""

import functools
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks.balls import distances
from gammacaps.attacks.gradient import Classifier
from gammacaps.attacks.table import attack_named
from gammacaps.data import StoredImages
from gammacaps.distributed.processes import ALONE, Processes
from gammacaps.evaluation.interval import share
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.specs import Spec, attacked_images
from gammacaps.progress import OnProgress
from gammacaps.radius import radius


class OutOfTime(Exception):
    """The evaluation's time is over; what was measured is in the store."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What one attack made of M images."""

    spec: Spec
    broken: Tensor  # M, right before the attack and wrong after it
    done: Tensor  # M, False from the first image on that the attack has not come to yet
    outside: float  # by how much it left the ball or [0, 1] at most
    seconds: float
    stood: int = 1  # images that it attacked and left right


@dataclass(frozen=True, eq=False)
class AttackJob:
    """The images of an evaluation, where they stand in the test set, and what the network says of them clean."""

    model: Classifier
    images: Tensor | StoredImages  # M C H W
    labels: Tensor  # M
    places: Tensor  # M
    correct: Tensor  # M, on the CPU
    batch: int
    store: PredictionStore
    other: Classifier | None = None  # what "transfer" attacks in place of the network
    deadline: float = float("inf")
    processes: Processes = ALONE


def measure(job: AttackJob, specs: list[Spec], progress: OnProgress) -> list[Measured]:
    """Runs the attacks, those at one radius in their order; each is given what the ones before it left."""
    outcomes: list[Measured] = []
    out_of_time = False
    for spec in specs:
        skip = torch.zeros_like(job.correct)
        for before in outcomes:
            if before.spec.eps == spec.eps and before.spec.attack in spec.after:
                skip |= before.broken
        try:
            if not out_of_time:
                _run(job, spec, job.correct & ~skip, progress)
        except OutOfTime:
            out_of_time = True
        predicted = job.store.predicted(spec, job.places)
        wanted = job.correct & ~skip
        broken = wanted & (predicted >= 0) & (predicted != job.labels.cpu())
        # The images up to the first that is still to be done: all others would make a biased sample.
        done = (~wanted | (predicted >= 0)).int().cumprod(0).bool()
        if not (wanted & done).any():
            done &= not wanted.any()
        stood = int((wanted & done & ~broken).sum())
        outcomes.append(Measured(spec, broken, done, job.store.outside(spec), job.store.seconds(spec), stood))
    return outcomes


def _run(job: AttackJob, spec: Spec, wanted: Tensor, progress: OnProgress) -> None:
    """Attacks the wanted images that the store does not know yet, and stores each batch.

    Of several processes each attacks whole batches, as one alone would: so they come to the very same result. What
    they find is stored in the batches' order, and an interrupted evaluation goes on with the same batches.
    """
    known = job.store.predicted(spec, job.places) >= 0
    todo = (wanted & ~known).nonzero().squeeze(1)
    total, done = int(wanted.sum()), int((wanted & known).sum())
    those = "right when clean" if torch.equal(wanted, job.correct) else "that earlier attacks left"
    what = f"{spec.attack} eps {radius(spec.eps)} on those {those}"
    batches = todo.split(job.batch) if len(todo) else ()
    for first in range(0, len(batches), job.processes.count):
        if job.processes.most(float(time.monotonic() > job.deadline))[0]:
            raise OutOfTime
        progress(what, done, total)
        together = batches[first : first + job.processes.count]
        answers = job.processes.map(functools.partial(_attack, job, spec), together)
        for index, (predicted, outside, seconds) in zip(together, answers, strict=True):
            job.store.add(spec, job.places[index], predicted, outside, seconds)
            done += len(index)
        progress(what, done, total)


def _attack(job: AttackJob, spec: Spec, index: Tensor) -> tuple[Tensor, float, float]:
    """What one batch is taken for under attack, by how much the attack left its ball or [0, 1], and its seconds."""
    started = time.monotonic()
    images, labels = job.images[index], job.labels[index]
    # A batch's own seed, so that an interrupted evaluation goes on to the same result.
    seed = spec.seed * 1_000_003 + int(job.places[index[0]])
    attacked = attacked_images(spec, job.model, images, labels, job.other, seed)
    with torch.no_grad():
        predicted = job.model(attacked).argmax(dim=1).cpu()
    far = distances(attacked - images, spec.norm).max().item() - spec.eps
    outside = max(far, -attacked.min().item(), attacked.max().item() - 1)
    return predicted, max(0.0, outside), time.monotonic() - started


def rows(outcomes: list[Measured], correct: Tensor) -> list[dict[str, Any]]:
    """Accuracy under each attack. An image counts if it is right both clean and attacked: no change is a change too."""
    result = []
    for one in outcomes:
        row = {**one.spec.row(), **share(stood_under(one, outcomes, correct)[one.done]), "seconds": one.seconds}
        result.append({**row, "complete": bool(one.done.all())})
    return result


def stood_under(one: Measured, outcomes: list[Measured], correct: Tensor) -> Tensor:
    """Which images (M) are right both clean and under an attack, and under those that it is given the rest of."""
    stood = correct.clone()
    for before in outcomes:
        if before is one or (before.spec.eps == one.spec.eps and before.spec.attack in one.spec.after):
            stood &= ~before.broken
    return stood


def worst(outcomes: list[Measured], correct: Tensor) -> list[dict[str, Any]]:
    """Per radius: the images that stand under every attack, and how often each attack broke one, and it alone."""
    result = []
    for eps in dict.fromkeys(one.spec.eps for one in outcomes):
        here = [one for one in outcomes if one.spec.eps == eps]
        done = torch.stack([one.done for one in here]).all(0)
        broken = torch.stack([one.broken for one in here])  # attacks M
        times = broken.sum(0)
        # The parts of an attack such as AutoAttack see only what the ones before them left: they share one entry.
        won: dict[str, dict[str, int]] = {}
        for one, by in zip(here, broken, strict=True):
            whole = attack_named(one.spec.attack).part_of
            entry = won.setdefault(one.spec.attack if whole is None else whole.name, {"broke": 0, "alone": 0})
            entry["broke"] += int(by[done].sum())
            entry["alone"] += int((by & (times == 1))[done].sum())
        stood = correct & ~broken.any(0)
        result.append({"eps": eps, **share(stood[done]), "complete": bool(done.all()), "won": won})
    return result
