"""Attacks as an evaluation runs them: each with its radius and numbers, and how it is carried out."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks import auto_attack, fgsm, grey, noise, pgd, vote_surrogate
from gammacaps.attacks.auto import PARTS, why_not_auto
from gammacaps.attacks.gradient import Classifier
from gammacaps.evaluation.config import EvaluateConfig

# Attacks that use the gradient of the network itself, and those that do not.
WHITE_BOX = ("fgsm", "pgd", "pgd-margin", "pgd-ce", "pgd-dlr", "apgd-ce", "apgd-t", "fab-t")
BLACK_BOX = ("noise", "transfer", "square", "auto-square", "grey")
AUTO = {"apgd-ce": "apgd-ce", "apgd-t": "apgd-t", "fab-t": "fab-t", "auto-square": "square"}
assert tuple(AUTO.values()) == PARTS


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

    @property
    def key(self) -> str:
        """A file's name for what it gave."""
        numbers = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return f"{self.attack}-eps{self.eps:g}-{hashlib.sha256(numbers.encode()).hexdigest()[:8]}"

    def row(self) -> dict[str, Any]:
        """What identifies it in results.json."""
        return {
            "norm": "linf",
            **{k: v for k, v in dataclasses.asdict(self).items() if k not in ("seed", "after", "surrogate")},
        }


def sweep_specs(config: EvaluateConfig) -> list[Spec]:
    """PGD at each radius of the curve, with steps that grow with it."""
    return [Spec("sweep", eps, 40, eps / 10, 1, "margin", config.seed) for eps in sorted(set(config.sweep))]


@dataclass(frozen=True)
class Kind:
    """What attacks must know of a classifier."""

    classes: int
    capsules: bool  # whether it has votes to attack, and scores that are lengths
    other: str | None = None  # the fingerprint of another network for the same task, where there is one


def specs_for(kind: Kind, config: EvaluateConfig, eps: float) -> tuple[list[Spec], list[str]]:
    """The attacks at one radius that can run on such a classifier, and a sentence for each that can't."""
    specs: list[Spec] = []
    skipped = []
    seed = config.seed
    long: dict[str, Any] = {"steps": 100, "step": eps / 10, "restarts": 2, "seed": seed}
    for attack in config.named_attacks():
        reason = None
        if attack in AUTO:
            reason = why_not_auto(AUTO[attack], kind.classes)
            spec = Spec(attack, eps, seed=seed, after=tuple(s.attack for s in specs if s.attack in AUTO))
        elif attack == "square":
            reason = why_not_auto("square", kind.classes)
            spec = Spec(attack, eps, steps=500, seed=seed)
        elif attack == "noise":
            spec = Spec(attack, eps, steps=20, seed=seed)
        elif attack == "fgsm":
            spec = Spec(attack, eps, 1, eps, loss=config.attack_loss)
        elif attack == "pgd":
            spec = Spec(attack, eps, config.attack_steps, config.attack_step, config.restarts, config.attack_loss, seed)
        elif attack == "pgd-ce":
            spec = Spec(attack, eps, loss="ce-log" if kind.capsules else "ce", **long)
        elif attack == "pgd-dlr":
            reason = None if kind.classes > 2 else f"its loss needs 3 classes and the network has {kind.classes}"
            spec = Spec(attack, eps, loss="dlr", **long)
        elif attack == "vote":
            reason = None if kind.capsules else "the network has no capsules, and so no votes"
            spec = Spec(attack, eps, loss="margin", **long)
        elif attack == "transfer":
            reason = None if kind.other is not None else "there is no other network for this task"
            spec = Spec(attack, eps, loss="margin", surrogate=kind.other, **long)
        else:
            spec = Spec(attack, eps, loss="margin", **long)
        if reason is None:
            specs.append(spec)
        else:
            skipped.append(f"{attack} was left out: {reason}.")
    if eps >= 0.5 and {"standard", "strong"} & set(config.attacks):
        specs.append(Spec("grey", eps))
    return specs, skipped


def attacked_images(
    spec: Spec, model: Classifier, images: Tensor, labels: Tensor, other: Classifier | None, seed: int
) -> Tensor:
    """The images that an attack gives; `other` is the network that "transfer" attacks in place of the real one."""
    generator = torch.Generator(images.device).manual_seed(seed)
    if spec.attack in AUTO or spec.attack == "square":
        part = AUTO.get(spec.attack, "square")
        queries = {"queries": spec.steps} if spec.steps is not None else {}
        return auto_attack(model, images, labels, eps=spec.eps, part=part, seed=spec.seed, **queries)
    if spec.attack == "grey":
        return grey(images, spec.eps)
    if spec.attack == "noise":
        assert spec.steps is not None
        return noise(model, images, labels, eps=spec.eps, draws=spec.steps, generator=generator)
    assert spec.loss is not None
    if spec.attack == "fgsm":
        return fgsm(model, images, labels, eps=spec.eps, loss=spec.loss)
    assert spec.steps is not None
    assert spec.step is not None
    numbers: dict[str, Any] = {"eps": spec.eps, "step": spec.step, "steps": spec.steps, "loss": spec.loss}
    if spec.attack in ("vote", "transfer"):
        surrogate = vote_surrogate(model) if spec.attack == "vote" else other
        assert surrogate is not None
        return from_surrogate(surrogate, model, images, labels, restarts=spec.restarts, generator=generator, **numbers)
    return pgd(model, images, labels, restarts=spec.restarts, until_broken=True, generator=generator, **numbers)


def from_surrogate(
    surrogate: Classifier, model: Classifier, images: Tensor, labels: Tensor, *, restarts: int, **options: Any
) -> Tensor:
    """PGD on another network, each start tested on the real one; images that none of them breaks stay as they are."""
    result = images.clone()
    for _ in range(restarts):
        attacked = pgd(surrogate, images, labels, **options)
        with torch.no_grad():
            broken = model(attacked).argmax(dim=1) != labels
        result[broken] = attacked[broken]
    return result
