"""Robustness of any torch classifier: the attacks, their worst case, and whether to believe it."""

import dataclasses
import time
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks.attack import victim_of
from gammacaps.attacks.gradient import Classifier
from gammacaps.data import StoredImages
from gammacaps.distributed.processes import ALONE, Processes
from gammacaps.evaluation.by_image import ByImage
from gammacaps.evaluation.checks import all_checks, verdict
from gammacaps.evaluation.clean import clean_scores
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.interval import share
from gammacaps.evaluation.measure import AttackJob, measure, rows, worst
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.specs import Spec, specs_for, sweep_specs
from gammacaps.progress import OnProgress

PAPER_EPS = (0.1, 0.3, 0.5)


def robustness(
    model: Classifier,
    images: Tensor | StoredImages,
    labels: Tensor,
    config: EvaluateConfig | None = None,
    *,
    other: Classifier | None = None,
    scores: Tensor | None = None,
    places: Tensor | None = None,
    store: PredictionStore | None = None,
    progress: OnProgress = lambda *_: None,
    processes: Processes = ALONE,
    by_image: ByImage | None = None,
) -> dict[str, Any]:
    """Accuracy clean, under each attack and under the worst of them, with the checks, as plain values.

    Args:
        model: gives scores (B, N) for images in [0, 1].
        config: which attacks, at which radii; its data and device are not looked at.
        other: a network for the same task, which "transfer" attacks in place of the model.
        scores: what the model gives the clean images (M, N), where that is known already.
        places: where the images stand in their data set, by which the store knows them.
        store: what was measured before, and what is measured now.
        processes: those that share the work; each gets all figures, and the first alone runs the checks.
        by_image: is told which images were right, clean and under each attack that has come to all of them.
    """
    config = config or EvaluateConfig()
    started = time.monotonic()
    places = torch.arange(len(images)) if places is None else places
    if scores is None:
        scores = clean_scores(model, images, config.batch, progress, processes)
    correct = scores.argmax(dim=1).cpu() == labels.cpu()
    deadline = float("inf") if config.minutes is None else started + 60 * config.minutes
    job = AttackJob(
        model, images, labels, places, correct, config.batch, store or PredictionStore(), other, deadline, processes
    )
    victim = victim_of(model, scores.shape[1], None if other is None else identity(other))
    specs: list[Spec] = []
    skipped: list[str] = []
    for eps in dict.fromkeys(PAPER_EPS if config.eps is None else config.eps):
        chosen, left_out = specs_for(victim, config, eps)
        specs += chosen
        skipped += [words for words in left_out if words not in skipped]
    outcomes = measure(job, specs, progress)
    curve = measure(job, sweep_specs(config), progress)
    if by_image is not None:
        by_image.take(places, correct, outcomes)
    result = {
        "clean": share(correct),
        "attacks": rows(outcomes, correct),
        # Where the curve passes a radius of the evaluation, it is one more attack there.
        "worst": worst([*outcomes, *(m for m in curve if m.spec.eps in {one.spec.eps for one in outcomes})], correct),
        "sweep": rows(curve, correct),
        "skipped": skipped,
        "complete": all(bool(one.done.all()) for one in (*outcomes, *curve)),
    }
    in_time = not processes.most(float(time.monotonic() >= deadline))[0]
    result["complete"] = result["complete"] and (in_time or not config.checks)
    if config.checks and outcomes and in_time:
        arguments = (model, images, labels, correct, outcomes, curve)
        checks = processes.first(lambda: all_checks(*arguments, seed=config.seed, progress=progress))
        result |= {"checks": [dataclasses.asdict(check) for check in checks], "verdict": verdict(checks)}
    return result
