"""The attack on one capsule: PGD that makes its length as small or as large as it can, another capsule in each row."""

import copy
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gammacaps.attacks.balls import LinfBall
from gammacaps.attacks.capsule_steps import pushed
from gammacaps.attacks.checks import check_attack, check_start
from gammacaps.errors import check_choice
from gammacaps.models import CapsuleModel
from gammacaps.nn.frozen import frozen

CapsuleLoss = Literal["length", "log-odds"]


def push(
    model: CapsuleModel,
    layer: int,
    images: Float[Tensor, "B C H W"],
    capsules: Int[Tensor, "B"],
    upward: Bool[Tensor, "B"],
    until: Float[Tensor, "B"],
    starts: Float[Tensor, "B C H W"],
    *,
    eps: float,
    step: float,
    steps: int,
    loss: str = "length",
) -> tuple[Float[Tensor, "B"], int]:
    """The extreme length found of each row's capsule within eps of its image (L-inf), and how many passes it took.

    Args:
        layer: the layer of the capsules, as an index into model.layers.
        upward: make the capsule long; else short.
        until: a row is left alone once its capsule is longer than this (upward), or no longer than this (else).
        starts: points in [-1, 1]; a row starts at its image plus eps times its point.
        step: the first step in units of eps; the steps fall linearly to 0.
        loss: what to follow the gradient of, the "length", or its "log-odds" in float64. Both point the same way, but
            where a capsule is so long that squash is flat, rounding leaves nothing of the first.
    """
    check_choice("loss of the attack on capsules", loss, get_args(CapsuleLoss))
    check_attack(images, eps=eps, step=step, steps=steps)
    check_start(starts, images, what="starts")
    ball = LinfBall(images, eps)
    points = ball.project(images + eps * starts)
    sizes = [step * eps * (1 - n / steps) for n in range(steps)]
    if loss == "length":
        by_engine = pushed(model, layer, images, points, capsules, upward, until, eps, [*sizes, 0.0])
        if by_engine is not None:
            return by_engine
    direction = torch.where(upward, 1.0, -1.0).to(images)
    best = torch.full_like(direction, -torch.inf)  # direction * length
    alive = torch.arange(len(images), device=images.device)  # the rows still worked on
    passes = 0
    wide = copy.deepcopy(model).double() if loss == "log-odds" else model
    with frozen(model), frozen(wide):
        for n in range(steps + 1):
            leaf = points.detach().requires_grad_(n < steps)
            with torch.set_grad_enabled(n < steps):
                value = direction[alive] * lengths_of(model, layer, leaf, capsules[alive])
            passes += len(alive)
            best[alive] = best[alive].maximum(value.detach())
            left = (value.abs() > until[alive]) != upward[alive]
            if n == steps or not left.any():
                break
            if loss == "log-odds":
                value = log_odds_of(wide, layer, leaf, capsules[alive]) * direction[alive]
                passes += len(alive)
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
            ball, alive = ball.of(left), alive[left]
            # A gradient that is not a number moves nothing, so that the points stay images.
            moved = ball.step(leaf.detach()[left], gradient[left].nan_to_num(), sizes[n])
            points = ball.project(moved)
    return best.abs(), passes


def lengths_of(
    model: CapsuleModel, layer: int, images: Float[Tensor, "B C H W"], capsules: Int[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """The length (for matrix capsules the activation) of one capsule in each image."""
    lengths = model.parse(images, couplings=False).activations[layer]
    return lengths.gather(1, capsules.unsqueeze(1)).squeeze(1)


def log_odds_of(
    model: CapsuleModel, layer: int, images: Float[Tensor, "B C H W"], capsules: Int[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """log(a / (1 - a)) of one capsule's length a in each image, by a network in float64.

    Of a squashed vector it is twice the logarithm of its length before the squash, of a sigmoid what stood inside.
    """
    lengths = lengths_of(model, layer, images.double(), capsules)
    least = torch.finfo(lengths.dtype).tiny
    return lengths.clamp_min(least).log() - (1 - lengths).clamp_min(least).log()
