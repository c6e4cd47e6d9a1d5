"""An attack as one object: what it is called, what it sees and needs, its numbers at a radius, and how it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gammacaps.attacks.gradient import Classifier
from gammacaps.imports import source_print
from gammacaps.models import has_capsules, has_mean_votes
from gammacaps.options import MOST_IN_CODE, check_whole
from gammacaps.short_repr import short_repr

# What an attack sees of the network: its own gradients, those of its votes without routing, those of another network
# for the same task, its scores alone, no more than which of some random draws is worst, or nothing at all.
Sees = Literal["gradients", "votes", "another network", "scores", "chance", "nothing"]


@dataclass(frozen=True)
class Victim:
    """What attacks must know of a classifier."""

    classes: int
    capsules: bool  # whether it has votes to attack, and scores that are lengths
    other: str | None = None  # the fingerprint of another network for the same task, where there is one
    mean_votes: bool = True  # whether, having capsules, it says what it is with the mean of the votes


def victim_of(model: Classifier, classes: int, other: str | None = None) -> Victim:
    """What attacks must know of this very classifier."""
    return Victim(classes, has_capsules(model), other, has_mean_votes(model))


@dataclass(frozen=True)
class Numbers:
    """How hard an attack tries; what it has no use for stays as it is here."""

    steps: int | None = None  # or draws, or queries
    step: float | None = None
    restarts: int = 1
    loss: str | None = None

    def __post_init__(self) -> None:
        # As results.json is read again: better before an evaluation than after it.
        check_whole("steps", self.steps, most=MOST_IN_CODE)
        check_whole("restarts", self.restarts, most=MOST_IN_CODE)


@dataclass(frozen=True, eq=False)
class Attempt:
    """All that an attack is given beside the classifier, the images and their labels."""

    eps: float
    numbers: Numbers
    generator: torch.Generator  # seeded for this batch
    seed: int = 0  # for attacks that seed themselves, the same for all batches
    other: Classifier | None = None  # the network to attack in place of the real one
    targets: Tensor | None = None  # classes (B,) to be taken for; only of attacks that can aim
    to_the_end: bool = False  # for a picture: go on where an image is broken, and show what fails as it is too
    norm: str = "linf"  # of eps


@dataclass(frozen=True)
class PartedAttack:
    """An attack of several parts, each on what those before it left: one entry and one row for all of them."""

    name: str
    title: str


@dataclass(frozen=True)
class Live:
    """An attack to play with on a page, image by image."""

    words: str  # in a menu
    numbers: Callable[[float], Numbers]
    place: int = 9  # in the menu; of those at the same place, the first in the table
    passes: int = 0  # of the network, for a bar of progress; 0 where nobody knows
    aims: bool = False  # whether it takes targets


Function = Callable[[Classifier, Tensor, Tensor, float, torch.Generator], Tensor]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack, as the table has it; in L-inf unless it knows other norms too."""

    name: str  # on the command line, in results.json and in the names of files
    title: str  # in tables
    sees: Sees
    run: Callable[[Classifier, Tensor, Tensor, Attempt], Tensor]  # classifier, images, labels: to attacked images
    # Its numbers at a radius; the second argument is what the user chose for the paper's own attacks.
    numbers: Callable[[float, Numbers, Victim], Numbers] = lambda eps, chosen, victim: Numbers()
    why_not: Callable[[Victim], str | None] = lambda victim: None  # why it can't run on such a network, in words
    suites: tuple[str, ...] = ()
    norms: tuple[str, ...] = ("linf",)  # that it can keep eps in
    climbs: Literal["one step", "many steps"] | None = None  # where it follows a gradient in steps of one length
    random: bool = True  # whether what it gives depends on a seed
    part_of: PartedAttack | None = None
    live: Live | None = None  # where it is quick enough to be played with
    by_name: bool = True  # whether it can be asked for by its own name; else it comes with its suites alone
    least_eps: float = 0.0  # below this radius it has nothing to do
    titled_by_steps: bool = False  # as in PGD-40
    in_curve: bool = True  # whether it is a line of the report's curve over the radius
    code: str | None = None  # a fingerprint of the code of a user's own attack; None for ours

    __repr__ = short_repr

    @classmethod
    def from_function(
        cls,
        name: str,
        title: str,
        function: Function,
        *,
        sees: Sees,
        suites: tuple[str, ...] = (),
        why_not: Callable[[Victim], str | None] = lambda victim: None,
        live: bool = True,
    ) -> "Attack":
        """The attack that is a function of the classifier, images (B, C, H, W), labels (B,), eps and a generator.

        It gives the attacked images. With `live` it can be played with in the explorer too.
        """

        def run(model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt) -> Tensor:
            return function(model, images, labels, attempt.eps, attempt.generator)

        menu = Live(title, lambda eps: Numbers()) if live else None
        code = source_print(function)
        return cls(name=name, title=title, sees=sees, run=run, suites=suites, why_not=why_not, live=menu, code=code)
