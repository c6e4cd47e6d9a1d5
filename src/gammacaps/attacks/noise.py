"""Attacks that know nothing of the network: random noise, and the one image that all others can be turned into."""

import torch
from torch import Tensor

from gammacaps.attacks.balls import BALLS, LinfBall
from gammacaps.attacks.checks import check_attack, check_scores
from gammacaps.attacks.gradient import Classifier
from gammacaps.attacks.losses import margin


@torch.no_grad()
def noise(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    draws: int = 20,
    generator: torch.Generator | None = None,
    norm: str = "linf",
) -> Tensor:
    """The worst of so many random perturbations: uniform in the ball, in L-inf by turns with its corners."""
    check_attack(images, labels, eps=eps, norm=norm, draws=draws)
    if len(images) == 0:
        return images.clone()
    ball, labels, scores = BALLS[norm](images, eps), labels.long(), model(images)
    check_scores(scores, labels)
    result, worst = images.clone(), margin(scores, labels)
    for draw in range(draws):
        points = ball.start(generator)
        if draw % 2 and isinstance(ball, LinfBall):
            points = torch.where(points < images, ball.low, ball.high)
        value = margin(model(points), labels)
        result[value > worst] = points[value > worst]
        worst = worst.maximum(value)
    return result


def grey(images: Tensor, eps: float) -> Tensor:
    """The image within eps (L-inf) that is nearest to grey: from eps 0.5 on the same for all, whatever they showed."""
    check_attack(images, eps=eps)
    ball = LinfBall(images, eps)
    return ball.project(torch.full_like(images, 0.5))
