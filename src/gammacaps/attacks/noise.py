"""Attacks that know nothing of the network: random noise, and the one image that all others can be turned into."""

import torch
from torch import Tensor

from gammacaps.attacks.balls import LinfBall
from gammacaps.attacks.gradient import Classifier
from gammacaps.attacks.losses import margin
from gammacaps.data import check_images
from gammacaps.errors import InputError


@torch.no_grad()
def noise(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    draws: int = 20,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The worst of so many random perturbations (L-inf), by turns uniform in the ball and at its corners."""
    check_images(images, labels)
    if draws < 1:
        raise InputError(f"Random noise needs at least 1 draw, not {draws}.")
    ball, labels = LinfBall(images, eps), labels.long()
    result, worst = images.clone(), margin(model(images), labels)
    for draw in range(draws):
        points = ball.start(generator)
        if draw % 2:
            points = torch.where(points < images, ball.low, ball.high)
        value = margin(model(points), labels)
        result[value > worst] = points[value > worst]
        worst = worst.maximum(value)
    return result


def grey(images: Tensor, eps: float) -> Tensor:
    """The image within eps (L-inf) that is nearest to grey: from eps 0.5 on the same for all, whatever they showed."""
    ball = LinfBall(images, eps)
    return ball.project(torch.full_like(images, 0.5))
