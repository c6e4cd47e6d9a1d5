"""What a training warns of, in words with what to do: it learns nothing, or it learns its images by heart.

**At chance.** The last five logged batches after the first fifth of training are counted together. A network that
gives the same answer whatever it sees is right on the share p of the most frequent class, and of n images on more than
n p + 3 sqrt(n p (1 - p)) only once in some 700 times: whoever is not above that has shown nothing. Under attack even a
network that learns can fall below, so that the same batches' clean images must be no better; and the last batch alone
must not be above chance, for then it has just begun. This is looked at with every line of metrics.jsonl, and said once.

**Overlearned.** At the end as many training images as held-back ones (test images where none were held back; nothing
is chosen by them) are measured in the same way. The training images must lead by 20 points, and by more than three
standard errors of that difference. It takes at most a twentieth of the training's passes, or is left out.
"""

import math
import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gammacaps.data import DataSet, StoredSet
from gammacaps.errors import InputError
from gammacaps.progress import say
from gammacaps.runs.train_config import TrainConfig
from gammacaps.runs.warnings import Kind, TrainingWarning, add_warning, read_warnings
from gammacaps.training.held_back import at_places
from gammacaps.training.held_folder import HeldFolder
from gammacaps.training.schedule import Length
from gammacaps.training.validation import STEPS, measured_weights, share_right
from gammacaps.training.watch import TakenStep, Watcher

ERRORS = 3  # standard errors that are no chance any more
FEW = 100  # of fewer images nothing can be said
BATCHES = 5  # logged batches that are counted together
FROM = 0.2  # share of training from which on a network is to know something
FAR = 0.2  # by so much more of the training images are right where they were learned by heart
MEASURED, LEAST = 256, 64  # images of each kind: at most, and at least
SHORT = 300  # steps in which even a good network may not have begun to learn
PRICE = 0.05  # of the training's passes


def above_chance(right: float, images: int, largest: float) -> bool:
    """Whether more of the images are right than one answer for all of them would explain."""
    return right > images * largest + ERRORS * math.sqrt(images * largest * (1 - largest))


@dataclass(frozen=True)
class Shown:
    """What the last logged batches have shown: nothing ("chance"), or at the end nothing under attack ("attack")."""

    kind: Kind
    right: float  # share of the images, attacked where training is
    clean: float
    images: int


class ChanceRule:
    """Whether the last batches are at chance, where always one answer is right for the share `largest`."""

    def __init__(self, largest: float) -> None:
        self.largest = largest
        self.batches: deque[tuple[float, float, int]] = deque(maxlen=BATCHES)  # right, right on clean images, images

    def judged(self, done: float, right: float, clean: float, size: int) -> Shown | None:
        """Takes in one more batch, when so much of training is done; None where there is nothing to warn of."""
        if done < FROM:
            return None
        self.batches.append((right, clean, size))
        begun = above_chance(max(right, clean), size, self.largest)
        right, clean, images = (sum(each) for each in zip(*self.batches, strict=True))
        if (len(self.batches) < BATCHES and done < 1) or images < FEW:
            return None
        shown = (right / images, clean / images, int(images))
        if not begun and not above_chance(max(right, clean), int(images), self.largest):
            return Shown("chance", *shown)
        if done >= 1 and not above_chance(right, int(images), self.largest):
            return Shown("attack", *shown)
        return None


class _Warns(Watcher):
    """What warnings share: each kind is said once for a run, by the first process, and kept."""

    def __init__(self, held: HeldFolder) -> None:
        self.held = held
        self.said: set[Kind] = held.processes.first(lambda: {each.kind for each in read_warnings(held.path)})

    def warn(self, taken: TakenStep, kind: Kind, words: str) -> None:
        if kind in self.said:
            return
        self.said.add(kind)
        self.held.write(add_warning, TrainingWarning(taken.learner.step, kind, words))
        if self.held.processes.rank == 0:
            say(f"{os.linesep if sys.stderr.isatty() else ''}Warning: {words}")  # below a bar, not beside it


class AtChance(_Warns):
    """Warns where the network is right no more often than one answer for all images."""

    def __init__(self, held: HeldFolder, length: Length, labels: Tensor, class_names: tuple[str, ...]) -> None:
        super().__init__(held)
        counts = labels.bincount()
        self.length, self.rule = length, ChanceRule(counts.max().item() / len(labels))
        self.frequent = class_names[int(counts.argmax())]

    def after_step(self, taken: TakenStep) -> None:
        if not taken.logged:
            return
        done, size = self.length.share(taken.learner), taken.sharing.size
        right = taken.row["accuracy"] * size
        known = not taken.config.robust or above_chance(right, size, self.rule.largest)
        shown = self.rule.judged(done, right, right if known else self.clean(taken), size)
        if shown is not None:
            words = self.at_chance(taken, done, shown) if shown.kind == "chance" else self.beaten(taken, shown)
            self.warn(taken, shown.kind, words)

    def at_chance(self, taken: TakenStep, done: float, shown: Shown) -> str:
        when = "at its end" if done >= 1 else f"after {done:.0%} of training"
        wait = "" if done >= 1 else "It may still begin to learn; if it does not, stop it. "
        steps = taken.learner.step / done  # of the whole training
        longer = f"a longer training, since {steps:.0f} steps are few; " if steps < SHORT else ""
        return (
            f"the network is stuck at chance {when}: {self.logged(shown)} {shown.clean:.0%} are right (chance is "
            f"{self.chance()}). {wait}Try in this order: {longer}--no-robust, which must learn first; a smaller --eps "
            f"and --eps-ramp 0.5; a lower --lr, such as {taken.config.lr / 3:.1g}; --standardize for pale pictures "
            "(preset paper); and gammacaps data check: wrong labels can't be learned."
        )

    def beaten(self, taken: TakenStep, shown: Shown) -> str:
        eps = taken.config.eps
        return (
            f"the network knows clean images ({self.logged(shown)} {shown.clean:.0%} are right), but under attack at "
            f"eps {eps:g} it is no better than chance ({shown.right:.0%} are right, chance is {self.chance()}): give "
            f"a smaller --eps, such as {eps / 2:.2g}, or train longer."
        )

    def logged(self, shown: Shown) -> str:
        return f"of the last {shown.images:,} images that were logged"

    def chance(self) -> str:
        return f"{self.rule.largest:.0%}, as always saying '{self.frequent}' is"

    def clean(self, taken: TakenStep) -> float:
        """How many of the batch's images are right before they are attacked."""
        model = taken.learner.model
        with torch.no_grad():
            own = (model(taken.images).argmax(dim=1) == taken.labels).float().mean()
        return taken.sharing.merged({}, own * len(taken.labels) / taken.sharing.size)[1].item() * taken.sharing.size


class Overlearned(_Warns):
    """Warns at the end of training where its own images are right far more often than others."""

    def __init__(
        self, held: HeldFolder, length: Length, data: DataSet | StoredSet, others: Callable[[], DataSet | StoredSet]
    ) -> None:
        super().__init__(held)
        self.length, self.data, self.others = length, data, others

    def after_step(self, taken: TakenStep) -> None:
        if self.length.share(taken.learner) < 1:
            return
        config = taken.config
        count = affordable(config, taken.learner.step, taken.sharing.size)
        if count < LEAST:
            return
        try:
            others = taken.sharing.processes.each(self.others)
        except InputError:  # data without a test split: nothing to measure on
            return
        count = min(count, len(self.data.labels), len(others.labels))
        if count < LEAST:
            return
        own, other = (
            self.right(taken, at_places(data, drawn(len(data.labels), count, config.seed)))
            for data in (self.data, others)
        )
        if overlearned(own, other, count):
            how = f"under attack at eps {config.eps:g} " if config.robust else ""
            self.warn(
                taken,
                "overlearned",
                f"the network has learned its images by heart: {how}{own:.0%} of {count} training images are right, "
                f"but {other:.0%} of {count} others are. More pictures help most. Else give fewer --steps; "
                "--validate 200, to keep the best weights; --shift 2 --turn 10 --zoom 0.1 (and --flip for things that "
                "have no left and right); or --weight-decay 0.05.",
            )

    def right(self, taken: TakenStep, data: DataSet | StoredSet) -> float:
        learner = taken.learner
        with measured_weights(learner, learner.kept()):
            return share_right(taken.config, learner.model, data, taken.images.device, taken.sharing.processes)


def affordable(config: TrainConfig, steps: int, batch: int) -> int:
    """How many images of each kind can be measured for the price."""
    attacks = len({config.attack_loss, "ce"}) if config.robust else 0
    each = 1 + attacks * (STEPS + 1)  # passes of an image
    trained = steps * batch * (1 + (config.attack_steps if config.robust else 0))
    return min(MEASURED, int(PRICE * trained / (2 * each)))


def overlearned(own: float, other: float, images: int) -> bool:
    """Whether training images are right so much more often than as many others that it is no chance."""
    error = math.sqrt((own * (1 - own) + other * (1 - other)) / images)
    return own - other > max(FAR, ERRORS * error)


def drawn(count: int, some: int, seed: int) -> Tensor:
    """Some places of so many, ascending."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + 970_027))
    return order[:some].sort().values
