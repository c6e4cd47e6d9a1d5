"""Attacks as an evaluation runs them: each with its radius and numbers, and how it is carried out."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks.attack import Attack, Attempt, Numbers, Victim
from gammacaps.attacks.gradient import Classifier
from gammacaps.attacks.losses import LOSSES
from gammacaps.attacks.table import attack_named, attacks_for
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.names import NORM_TITLES
from gammacaps.options import FURTHEST, MOST_STEPS

HIDDEN = ("seed", "after", "surrogate", "code")  # what a row of results.json does not say of an attack
MOST_PICTURED = 10 * MOST_STEPS  # steps in all, over the restarts


@dataclass(frozen=True)
class Spec:
    """One attack at one radius. What it gives an image depends on these numbers, and its random start on the batch."""

    attack: str
    eps: float
    steps: int | None = None
    step: float | None = None
    restarts: int = 1
    loss: str | None = None
    seed: int = 0
    after: tuple[str, ...] = ()  # attacks whose broken images it leaves alone, as AutoAttack's parts do
    surrogate: str | None = None  # the fingerprint of the network that "transfer" attacks
    code: str | None = None  # the fingerprint of a user's own attack: what an older version of it gave is not used
    norm: str = "linf"  # of the radius

    @property
    def key(self) -> str:
        """A file's name for what it gave."""
        fields = dataclasses.asdict(self)
        # What is as it always was before there was a choice leaves no trace, so that older files are found.
        if self.code is None:
            del fields["code"]
        if self.norm == "linf":
            del fields["norm"]
        numbers = json.dumps(fields, sort_keys=True)
        radius = f"eps{self.eps:g}" if self.norm == "linf" else f"{self.norm}-eps{self.eps:g}"
        return f"{self.attack}-{radius}-{hashlib.sha256(numbers.encode()).hexdigest()[:8]}"

    def row(self) -> dict[str, Any]:
        """What identifies it in results.json."""
        return {
            "norm": self.norm,
            **{k: v for k, v in dataclasses.asdict(self).items() if k not in ("norm", *HIDDEN)},
        }

    @classmethod
    def from_row(cls, row: dict[str, Any], *, seed: int = 0) -> "Spec":
        """The attack of a row of results.json, which does not say its seed."""
        told = {name: row[name] for name in ("attack", "eps", "steps", "step", "restarts", "loss")}
        return cls(**told, seed=seed, norm=row.get("norm", "linf"))

    @property
    def numbers(self) -> Numbers:
        return Numbers(self.steps, self.step, self.restarts, self.loss)


def sweep_specs(config: EvaluateConfig) -> list[Spec]:
    """PGD at each radius of the curve, with steps that grow with it."""
    curve, any_network = attack_named("sweep"), Victim(classes=2, capsules=False)
    return [_spec(curve, eps, config, any_network) for eps in sorted(set(config.sweep))]


def specs_for(victim: Victim, config: EvaluateConfig, eps: float) -> tuple[list[Spec], list[str]]:
    """The attacks at one radius that can run on such a classifier, and a sentence for each that can't."""
    specs: list[Spec] = []
    skipped = []
    for attack in attacks_for(config.attacks):
        if eps < attack.least_eps:
            continue
        reason = attack.why_not(victim)
        if config.norm not in attack.norms:
            reason = f"it has no way to stay near an image in the norm {NORM_TITLES[config.norm]}"
        if reason is None:
            parts = (s.attack for s in specs if attack.part_of and attack_named(s.attack).part_of == attack.part_of)
            specs.append(_spec(attack, eps, config, victim, after=tuple(parts)))
        else:
            skipped.append(f"{attack.name} was left out: {reason}.")
    return specs, skipped


def _spec(attack: Attack, eps: float, config: EvaluateConfig, victim: Victim, after: tuple[str, ...] = ()) -> Spec:
    """An attack with its numbers at a radius."""
    # The paper's step is one of L-inf; in other norms it stands for a tenth of eps.
    papers = config.norm != "linf" and config.attack_step == EvaluateConfig.attack_step
    step = eps / 10 if papers else config.attack_step
    chosen = Numbers(config.attack_steps, step, config.restarts, config.attack_loss)
    return Spec(
        attack.name,
        eps,
        **dataclasses.asdict(attack.numbers(eps, chosen, victim)),
        seed=config.seed if attack.random else 0,
        after=after,
        surrogate=victim.other if attack.sees == "another network" else None,
        code=attack.code,
        norm=config.norm,
    )


def attacked_images(
    spec: Spec,
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    other: Classifier | None,
    seed: int,
    *,
    targets: Tensor | None = None,
    to_the_end: bool = False,
) -> Tensor:
    """The images that an attack gives; `other` is the network that "transfer" attacks in place of the real one.

    The random starts are by `seed`. An image is left alone once it is broken, and one that an attack on another
    network does not break stays as it was; with `to_the_end`, for pictures, each goes all of its way. Attacks that aim
    take `targets` (B,), the classes to be taken for.
    """
    generator = torch.Generator(images.device).manual_seed(seed)
    attempt = Attempt(spec.eps, spec.numbers, generator, spec.seed, other, targets, to_the_end, spec.norm)
    attack = attack_named(spec.attack)
    try:
        attacked = attack.run(model, images.clone(), labels.clone(), attempt)  # what it does in place stays its own
    except InputError:
        raise
    except Exception as error:
        if attack.code is None:
            raise
        raise InputError(f"The attack {spec.attack} fails ({error!r}): fix it.") from error
    if not isinstance(attacked, Tensor) or attacked.shape != images.shape:
        given = tuple(attacked.shape) if isinstance(attacked, Tensor) else type(attacked).__name__
        raise InputError(
            f"The attack {spec.attack} gave {given} for images of shape {tuple(images.shape)}: fix the attack."
        )
    attacked = attacked.detach().to(images)
    if not attacked.isfinite().all():
        raise InputError(f"The attack {spec.attack} gave pixels that are not finite numbers: fix the attack.")
    return attacked


def pictured_attack(
    rows: Iterable[dict[str, Any]], eps: float, model: Classifier, images: Tensor, labels: Tensor, *, seed: int = 0
) -> Tensor:
    """The images under the paper's PGD for a picture, each moved all of its way.

    With the numbers of the row of results.json at this radius, so that picture and figure are of one attack; where
    `rows` have none that can be run, or one that would seem endless, with those of the explorer.
    """
    told = [Spec.from_row(row) for row in rows if row["attack"] == "pgd" and row["eps"] == eps]
    measured = [spec for spec in told if spec.norm == "linf"]
    spec = measured[0] if measured and _can_be_pictured(measured[0]) else live_spec("pgd", eps)
    return attacked_images(spec, model, images, labels, None, seed, to_the_end=True)


def live_spec(name: str, eps: float) -> Spec:
    """An attack with the numbers that it is played with on a page."""
    live = attack_named(name).live
    if live is None:
        raise InputError(f"The attack {name} is none to play with: give it `live` in the table of attacks.")
    return Spec(name, eps, **dataclasses.asdict(live.numbers(eps)))


def _can_be_pictured(spec: Spec) -> bool:
    """Whether a row of PGD says all of its numbers, and no more steps than one waits for."""
    if spec.steps is None or spec.step is None or spec.loss not in LOSSES:
        return False
    return 0 <= spec.step <= FURTHEST and spec.steps * spec.restarts <= MOST_PICTURED
