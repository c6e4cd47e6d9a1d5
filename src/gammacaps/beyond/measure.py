"""A network and test images to the figures of beyond.json, part by part."""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks import Grid, spatial
from gammacaps.attacks.attack import victim_of
from gammacaps.beyond.kept import KeptParts
from gammacaps.beyond.sureness import KnownPatterns, Said, said
from gammacaps.beyond.unseen import BLANK, NOISE, told_apart, unseen_images
from gammacaps.corruptions import corrupt, kinds
from gammacaps.data import StoredImages
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.interval import share
from gammacaps.evaluation.measure import AttackJob, measure, rows, worst
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.specs import specs_for
from gammacaps.metrics import answered, calibration_error, reliability
from gammacaps.models import Model
from gammacaps.ops.placing import placed
from gammacaps.progress import OnProgress

ATTACKS = ("pgd", "pgd-ce")  # in each norm
ANGLES = tuple(range(0, 91, 10))  # of the curve
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the images answered
UNSEEN = 1000  # images of each source, at most
SHIFT = 0.1  # of the side: 3 of 28 or 32 pixels


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """What is measured: a network on its device, M test images with labels and places, and what it says of them."""

    model: Model
    device: torch.device
    images: Tensor | StoredImages  # M C H W, wherever they lie
    labels: Tensor  # M, on the CPU
    places: Tensor  # M, in the test set
    config: EvaluateConfig
    known: Said
    progress: OnProgress

    @property
    def correct(self) -> Tensor:
        return self.known.answers == self.labels

    def batches(self) -> Sequence[Tensor]:
        return torch.arange(len(self.labels)).split(self.config.batch)


def subject(
    model: Model,
    images: Tensor | StoredImages,
    labels: Tensor,
    config: EvaluateConfig,
    *,
    places: Tensor | None = None,
    progress: OnProgress = lambda *_: None,
) -> Subject:
    """A network, wherever it is, and images, with what it says of them."""
    device = next(model.parameters(), torch.zeros(())).device
    places = torch.arange(len(labels)) if places is None else places
    known = said(model, images, config.batch, device)
    return Subject(model, device, images, labels.cpu(), places, config, known, progress)


def in_norms(of: Subject, radii: dict[str, float], store: PredictionStore, deadline: float) -> list[dict[str, Any]]:
    """The worst case over PGD on margins and on cross-entropy in each norm, as `gammacaps evaluate --norm` has it."""
    images, labels = of.images.to(of.device), of.labels.to(of.device)
    job = AttackJob(of.model, images, labels, of.places, of.correct, of.config.batch, store, deadline=deadline)
    victim = victim_of(of.model, of.model.classes)
    found = []
    for norm, eps in radii.items():
        config = EvaluateConfig(attacks=ATTACKS, norm=norm, eps=(eps,), seed=of.config.seed)  # type: ignore[arg-type]
        specs, _ = specs_for(victim, config, eps)
        outcomes = measure(job, specs, of.progress)
        (row,) = worst(outcomes, of.correct)
        found.append({"norm": norm, **row, "attacks": rows(outcomes, of.correct)})
    return found


def placed_worst(of: Subject, parts: KeptParts) -> dict[str, Any]:
    """The images that are right at every placement of the grid, and clean."""
    side = min(of.model.image_shape[1:])
    grid = Grid(shift=max(1, round(SHIFT * side)))
    stood: list[bool] = []
    done = 0
    for index in of.batches():
        settings = {"grid": dataclasses.asdict(grid), "places": of.places[index].tolist()}

        def attack(index: Tensor = index) -> list[bool]:
            right = of.correct[index]
            wanted = index[right]
            images, labels = of.images[wanted].to(of.device), of.labels[wanted].to(of.device)
            moved = spatial(of.model, images, labels, grid=grid, until_broken=True)
            with torch.no_grad():
                # Not where no placement was tried: a network has no answer to no image.
                stands = of.model(moved).argmax(dim=1) == labels if len(moved) else labels.bool()
            right[right.clone()] = stands.cpu()
            return right.tolist()

        of.progress("turns, shifts, scalings", done, len(of.labels))
        found = parts.get("spatial", settings, attack)
        if found is None:
            break  # the images up to here: all others would make a biased sample
        stood += found
        done += len(index)
    figures = share(torch.tensor(stood, dtype=torch.bool))
    tried = {"placements": len(grid.placements()), **dataclasses.asdict(grid)}
    return {**figures, "grid": tried, "complete": done == len(of.labels)}


def over_the_angle(of: Subject, parts: KeptParts) -> list[dict[str, Any]] | None:
    """Plain accuracy of images that are all turned by the same angle, to the right and to the left."""

    def measured() -> list[dict[str, Any]]:
        found = []
        for angle in ANGLES:
            of.progress("accuracy over the angle", angle, ANGLES[-1])
            right, left = (share(_right(of, functools.partial(placed, turn=way))) for way in (angle, -angle))
            found.append({"angle": angle, "right": right, "left": left})
        return found

    return parts.get("turned", {"angles": ANGLES}, measured)


def corrupted(of: Subject, parts: KeptParts) -> dict[str, Any]:
    """Accuracy under each corruption of MNIST-C, and their mean where all are there."""
    found = []
    for kind in kinds():
        of.progress(f"corruption {kind}", 0, len(of.labels))

        def measured(kind: str = kind) -> dict[str, Any]:
            # A batch's own seed, so that its images do not all get the same damage as those of the next one.
            firsts = (int(of.places[index[0]]) for index in of.batches())
            seeds = iter((of.config.seed * 1_000_003 + first) % 2**31 for first in firsts)
            return share(_right(of, lambda part: corrupt(part, kind, seed=next(seeds))))

        figures = parts.get(f"corruption {kind}", {"batch": of.config.batch}, measured)
        if figures is not None:
            found.append({"kind": kind, **figures})
    whole = len(found) == len(kinds())
    return {"mean": sum(row["accuracy"] for row in found) / len(found) if whole else None, "kinds": found}


def unseen(
    of: Subject,
    sources: Sequence[str],
    patterns: KnownPatterns | None,
    parts: KeptParts,
    *,
    eps: float,
    data_dir: str | Path | None,
) -> list[dict[str, Any]]:
    """How well noise, blank images and those of other data sets are told from the test images."""
    rows = []
    for source in (NOISE, BLANK, *sources):
        count, seed = min(UNSEEN, len(of.labels)), of.config.seed

        def measured(source: str = source, count: int = count, seed: int = seed) -> dict[str, Any]:
            images = unseen_images(source, of.model.image_shape, count, seed=seed, data_dir=data_dir)
            ways: dict[str, Any] = {"eps": eps, "seed": seed, "batch": of.config.batch, "device": of.device}
            return told_apart(of.model, of.known, images, patterns, **ways)

        of.progress(f"unseen: {source}", 0, count)
        found = parts.get(f"unseen {source}", {"count": count, "eps": eps, "batch": of.config.batch}, measured)
        if found is not None:
            rows.append({"source": source, "eps": eps, **found})
    return rows


def calibrated(of: Subject) -> dict[str, Any]:
    """Whether the network is as sure as it is right, and how right it is where it may leave out what it doubts."""
    bins = reliability(of.known.sure, of.correct)
    return {
        "error": calibration_error(bins),
        "bins": [dataclasses.asdict(each) for each in bins],
        "answered": [{"share": part, "accuracy": answered(of.known.sure, of.correct, part)} for part in SHARES],
    }


def deadline_of(config: EvaluateConfig, started: float | None = None) -> float:
    now = time.monotonic() if started is None else started
    return float("inf") if config.minutes is None else now + 60 * config.minutes


@torch.no_grad()
def _right(of: Subject, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Which images (M) the network answers rightly once they are changed."""
    answers = []
    for index in of.batches():
        answers.append(of.model(change(of.images[index].to(of.device))).argmax(dim=1).cpu())
    return torch.cat(answers) == of.labels
