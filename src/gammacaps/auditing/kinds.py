"""What kind of capsule is it? Definitions 3.1 to 3.4, for one threshold and one set of attacked lengths."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from gammacaps.metrics.usefulness import chance_level, robust_usefulness, usefulness, worst_case

GAMMA, NON_ROBUST, NOT_USEFUL, DEAD = KINDS = ("gamma-capsule", "non-robust", "not useful", "dead")
SOME_SET = "gamma-capsule for some class set"


@dataclass(frozen=True)
class View:
    """The capsules of a layer as one threshold shows them, without attack (Definition 3.1)."""

    tau: float
    labels: Tensor  # M
    active: Tensor  # M I
    rho: Tensor  # I
    sets: Tensor  # I N: the classes that each capsule speaks for
    chance: Tensor  # I: the rho of labels at random
    useful: Tensor  # I


@dataclass(frozen=True)
class LayerVerdict:
    """The same capsules under attack (Definitions 3.2 to 3.4)."""

    gamma: Tensor  # I: of the feature that has rho
    interval: Tensor  # 2 I: its 95% interval
    best: Tensor  # I: the largest gamma of any class set
    best_sets: Tensor  # I N: and the set that has it
    kinds: list[str]  # I
    some_set: Tensor  # I: useful, and robust at least for that set


def view(lengths: Float[Tensor, "M I"], labels: Int[Tensor, "M"], classes: int, tau: float, seed: int) -> View:
    """A capsule counts as useful if its rho is above what luck gives."""
    active = lengths > tau
    rho, sets = usefulness(active, labels, classes)
    chance = chance_level(active, labels, classes, seed=seed)
    return View(tau, labels, active, rho, sets, chance, rho > chance + 1e-9)


def judge(seen: View, shortest: Float[Tensor, "M I"], longest: Float[Tensor, "M I"]) -> LayerVerdict:
    """Verdicts from the shortest and the longest that the attack made each capsule in each image."""
    surely, possibly = shortest > seen.tau, longest > seen.tau
    values = worst_case(surely, possibly, seen.labels, seen.sets)
    best, best_sets = robust_usefulness(surely, possibly, seen.labels, seen.sets.shape[1])
    gamma, lives = values.mean(0), seen.active.any(0)
    # Sums in float64: what is within a rounding of 0 is 0.
    kinds = [
        DEAD if not alive else NOT_USEFUL if not useful else GAMMA if worst > 1e-9 else NON_ROBUST
        for alive, useful, worst in zip(lives.tolist(), seen.useful.tolist(), gamma.tolist(), strict=True)
    ]
    interval = mean_interval(values, seen.labels)
    return LayerVerdict(gamma, interval, best, best_sets, kinds, seen.useful & (best > 1e-9))


def counts(verdict: LayerVerdict) -> dict[str, int]:
    """How many capsules there are of each kind, and how many are gamma-capsules at least for some class set."""
    return {kind: verdict.kinds.count(kind) for kind in KINDS} | {SOME_SET: int(verdict.some_set.sum())}


def row(seen: View, verdicts: list[LayerVerdict], i: int) -> dict[str, Any]:
    """The figures of one capsule, its kind by the last verdict; those under attack are None where it is not useful."""
    last, active = verdicts[-1], seen.active[:, i]
    clean = worst_case(seen.active[:, i : i + 1], seen.active[:, i : i + 1], seen.labels, seen.sets[i : i + 1])
    speaks = seen.sets[i, seen.labels]  # M: for the class of this image
    figures: dict[str, Any] = {
        "kind": last.kinds[i],
        "active": active.double().mean().item(),
        "classes": seen.sets[i].nonzero().squeeze(1).tolist(),
        "agreement": speaks[active].double().mean().item() if active.any() else None,
        "rho": seen.rho[i].item(),
        "rho_interval": mean_interval(clean, seen.labels)[:, 0].tolist(),
        "chance": seen.chance[i].item(),
    }
    if not seen.useful[i]:
        return figures | dict.fromkeys(("gamma", "gamma_interval", "gamma_any", "gamma_any_classes"))
    return figures | {
        "gamma": [verdict.gamma[i].item() for verdict in verdicts],
        "gamma_interval": last.interval[:, i].tolist(),
        "gamma_any": last.best[i].item(),
        "gamma_any_classes": last.best_sets[i].nonzero().squeeze(1).tolist(),
    }


def mean_interval(values: Float[Tensor, "M I"], labels: Int[Tensor, "M"]) -> Float[Tensor, "2 I"]:
    """The 95% interval of the mean, by the normal distribution; the shares of the classes are fixed, not drawn."""
    member = one_hot(labels).to(values)  # M N
    means = (member.T @ values) / member.sum(0).clamp_min(1).unsqueeze(1)  # N I: of each class
    half = 1.959963984540054 * (values - means[labels]).square().mean(0).sqrt() / math.sqrt(len(values))
    return torch.stack((values.mean(0) - half, values.mean(0) + half))
