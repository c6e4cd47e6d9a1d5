"""Attacks that follow the gradient of the image: FGSM and PGD, on any torch classifier."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from gammacaps.attacks.ascent import Slope, ascend
from gammacaps.attacks.balls import BALLS
from gammacaps.attacks.checks import check_attack, check_start
from gammacaps.attacks.losses import AttackLoss
from gammacaps.data.checks import check_labels
from gammacaps.nn.frozen import frozen

Classifier = Callable[[Tensor], Tensor]


def fgsm(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    loss: str | AttackLoss = "margin",
    norm: str = "linf",
    targets: Tensor | None = None,
) -> Tensor:
    """One step of size eps along the gradient's sign (L2: itself; L1: its largest): the fast gradient sign method."""
    return climbed(
        model,
        images,
        labels,
        eps=eps,
        step=eps,
        steps=1,
        random_start=False,
        loss=loss,
        norm=norm,
        targets=targets,
    )


def pgd(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    step: float | None = None,
    steps: int = 40,
    random_start: bool = True,
    restarts: int = 1,
    loss: str | AttackLoss = "margin",
    norm: str = "linf",
    targets: Tensor | None = None,
    until_broken: bool = False,
    generator: torch.Generator | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """Projected gradient descent: images (B, C, H, W) moved to where the loss is large, within eps and [0, 1].

    Args:
        model: gives scores (B, N) for images; its weights are frozen while it is attacked.
        eps: the radius of the ball, in the norm "linf" (0 to 1), "l2" or "l1".
        steps: the number of the steps uphill.
        step: their length; a tenth of eps by default, and more where so few steps could not cross the ball. Steps
            that can't cross it are warned of.
        restarts: how often to start again from another random point; the worst result of each image is kept.
        loss: "margin", "ce", "ce-log", "dlr", or a function of scores (B, N) and labels (B,) to (B,).
        targets: classes (B,) that the images shall be taken for, instead of any wrong one.
        until_broken: leave an image alone once it is broken: faster for evaluation, too weak for training.
        generator: the source of the random starts.
        start: images (B, C, H, W) to start from, brought into the ball, instead of the first random point.
    """
    check_attack(images, labels, eps=eps, norm=norm, step=0 if step is None else step, steps=steps, restarts=restarts)
    if step is None:
        step = default_step(eps, steps)
    elif steps * step < eps * (1 - 1e-9):
        words = f"{steps} steps of {step:g} reach {steps * step:g}, less than eps {eps:g}, so that much may stay unseen"
        warnings.warn(f"{words}: give more steps, or no step for one that fits.", stacklevel=2)
    return climbed(
        model,
        images,
        labels,
        eps=eps,
        step=step,
        steps=steps,
        random_start=random_start,
        restarts=restarts,
        loss=loss,
        norm=norm,
        targets=targets,
        until_broken=until_broken,
        generator=generator,
        start=start,
    )


def default_step(eps: float, steps: int) -> float:
    """A tenth of the radius; with fewer than 25 steps so much that they go two and a half times as far as it."""
    return max(eps / 10, 2.5 * eps / steps)


def climbed(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    step: float,
    steps: int,
    random_start: bool = True,
    restarts: int = 1,
    loss: str | AttackLoss = "margin",
    norm: str = "linf",
    targets: Tensor | None = None,
    until_broken: bool = False,
    generator: torch.Generator | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """PGD with the very numbers given, for training and evaluation, which say elsewhere what too short steps mean."""
    check_attack(images, labels, eps=eps, norm=norm, step=step, steps=steps, restarts=restarts)
    if start is not None:
        check_start(start, images)
    if targets is not None:
        check_labels(targets, len(images), where="The targets")
    slope, worst = Slope(model, loss, labels, targets), Worst(images.detach())
    if len(images) == 0:
        return worst.images
    ball = BALLS[norm](images.detach(), eps)
    alive = torch.arange(len(images), device=images.device)  # the images still worked on
    with frozen(model):
        for restart in range(restarts):
            if start is not None and restart == 0:
                points = ball.project(start.detach())
            else:
                points = ball.start(generator) if random_start else ball.images
            points, stands = ascend(
                slope, ball, points, alive, step=step, steps=steps, norm=norm, until_broken=until_broken
            )
            if restarts == 1 and not until_broken:
                return points
            if until_broken and not stands.all():
                worst.images[alive[~stands]] = points[~stands]
                alive, points, ball = alive[stands], points[stands], ball.of(stands)
                if len(alive) == 0:
                    break
            with torch.no_grad():
                height, broken = slope.at(points, alive)
            worst.add(alive, points, height.float(), broken)
            if until_broken:
                alive, ball = alive[~broken], ball.of(~broken)
                if len(alive) == 0:
                    break
    return worst.images


class Worst:
    """The worst that the starts have found for each image; the image itself at first."""

    def __init__(self, images: Tensor) -> None:
        self.images = images.clone()
        self.height = torch.full(images.shape[:1], -torch.inf, device=images.device)
        self.broken = torch.zeros(images.shape[:1], dtype=torch.bool, device=images.device)

    def add(self, which: Tensor, points: Tensor, height: Tensor, broken: Tensor) -> None:
        """Takes the points of the images `which` that are worse than what was there before."""
        # A broken image stays broken: it gives way only to another broken one that is worse.
        before = self.broken[which]
        better = (broken & ~before) | ((broken == before) & (height > self.height[which]))
        changed = which[better]
        self.images[changed], self.height[changed] = points[better], height[better]
        self.broken[changed] = broken[better]
