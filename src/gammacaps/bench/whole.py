"""Whole pieces of work on a network that ships, timed once each: AutoAttack and the audit."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from gammacaps.attacks import auto_attack
from gammacaps.attacks.auto import PARTS
from gammacaps.attacks.capsules import push
from gammacaps.auditing.audit import audit
from gammacaps.auditing.config import AuditConfig
from gammacaps.bench.ways import attacked_by
from gammacaps.data import DataSet, load_set
from gammacaps.models import CapsuleModel, Model, load, require_capsules

SHIPPED, EPS, IMAGES = "mnist", 0.3, 1000
TRIED = 64  # images on which the plain way must come to the same
ODD_ONES = 2  # as many of them may fall by the one way and not by the other
APART = 0.01  # so far the lengths that a step reaches may lie apart on average


@dataclass(frozen=True)
class WholeWork:
    """Work to be timed once; `objection` holds some of it against the plain way and says what is wrong, if anything."""

    objection: Callable[[], str | None]
    run: Callable[[], object]


def autoattack(device: torch.device) -> WholeWork:
    """All four parts of AutoAttack, each on what the one before has left."""
    model, data = shipped(device)
    images, labels = (t[:IMAGES].to(device) for t in (data.images, data.labels))

    def left(count: int, parts: tuple[str, ...], plain: bool) -> int:
        points, goal = images[:count], labels[:count]
        with attacked_by(plain):
            for part in parts:
                right = model(auto_attack(model, points, goal, eps=EPS, part=part)).argmax(1) == goal
                points, goal = points[right], goal[right]
        return len(goal)

    def objection() -> str | None:
        ours, plain = (left(TRIED, PARTS[:1], way) for way in (False, True))
        return (
            None if abs(ours - plain) <= ODD_ONES else f"not timed: {ours} of {TRIED} stand, by the plain way {plain}"
        )

    return WholeWork(objection, lambda: left(IMAGES, PARTS, False))


def whole_audit(device: torch.device) -> WholeWork:
    """The audit of all hidden capsules."""
    network, data = shipped(device)
    model: CapsuleModel = require_capsules(network, "audit", "what a capsule says depends on an image's")
    config = AuditConfig(limit=IMAGES, eps=(EPS,), device=str(device))

    def reached(plain: bool) -> torch.Tensor:
        images = data.images[:TRIED].to(device)
        capsules = torch.arange(TRIED, device=device) % model.counts()[1]
        upward = torch.arange(TRIED, device=device) % 2 == 0
        until = torch.where(upward, torch.inf, -torch.inf).to(images)
        given = (model, 1, images, capsules, upward, until, torch.zeros_like(images))
        with attacked_by(plain):
            return push(*given, eps=EPS, step=config.attack_step, steps=1)[0]

    def objection() -> str | None:
        apart = (reached(False) - reached(True)).abs().mean().item()
        return None if apart <= APART else f"not timed: one step reaches lengths that lie {apart:.1e} apart"

    return WholeWork(objection, lambda: audit(model, data, config))


def shipped(device: torch.device) -> tuple[Model, DataSet]:
    """The network and its test images."""
    return load(SHIPPED).to(device).requires_grad_(False).eval(), load_set(SHIPPED, "test")


WHOLE: dict[str, Callable[[torch.device], WholeWork]] = {"autoattack": autoattack, "audit": whole_audit}
