"""Attacks that follow the gradient of the image: FGSM and PGD, on any torch classifier."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from gammacaps.attacks.balls import BALLS, LinfBall
from gammacaps.attacks.checks import check_attack, check_scores, check_start
from gammacaps.attacks.fast import fast_attack
from gammacaps.attacks.losses import AttackLoss, loss_of
from gammacaps.data.checks import check_labels

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
    """One step of size eps along the gradient's sign (its direction for L2): the fast gradient sign method."""
    return pgd(
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
    step: float = 0.01,
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
        eps: the radius of the ball, in the norm "linf" (0 to 1) or "l2".
        step, steps: the length and number of the steps uphill.
        restarts: how often to start again from another random point; the worst result of each image is kept.
        loss: "margin", "ce", "ce-log", "dlr", or a function of scores (B, N) and labels (B,) to (B,).
        targets: classes (B,) that the images shall be taken for, instead of any wrong one.
        until_broken: leave an image alone once it is broken: faster for evaluation, too weak for training.
        generator: the source of the random starts.
        start: images (B, C, H, W) to start from, brought into the ball, instead of the first random point.
    """
    check_attack(images, labels, eps=eps, norm=norm, step=step, steps=steps, restarts=restarts)
    if start is not None:
        check_start(start, images)
    ascended = loss_of(loss)
    if targets is not None:
        check_labels(targets, len(images), where="The targets")
    if len(images) == 0:
        return images.detach().clone()
    goal = (labels if targets is None else targets).long()
    sign = 1 if targets is None else -1

    checked = False  # the number of classes is known only from the first scores

    def rate(points: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal checked
        scores = model(points)
        if not checked:
            check_scores(scores, goal)
            checked = True
        broken = (scores.argmax(dim=1) == goal) == (targets is not None)
        return sign * ascended(scores, goal), broken

    ball = BALLS[norm](images.detach(), eps)
    result = images.detach().clone()
    worst = torch.full(labels.shape, -torch.inf, device=images.device)
    was_broken = torch.zeros(labels.shape, dtype=torch.bool, device=images.device)
    alive = torch.arange(len(images), device=images.device)  # the images still worked on
    with frozen(model):
        for restart in range(restarts):
            if start is not None and restart == 0:
                points = ball.project(start.detach())
            else:
                points = ball.start(generator) if random_start else ball.images
            if (fast := fast_attack(model, points, loss, norm, until_broken)) is not None:
                assert isinstance(ball, LinfBall)
                check_labels(goal, len(images), fast.classes)
                points = fast.run(points, ball.low, ball.high, goal[alive], step, steps, sign)
            for _ in range(0 if fast is not None else steps):
                points = points.detach().requires_grad_()
                with torch.enable_grad():
                    value, broken = rate(points, goal[alive])
                    gradient = _gradient(value, points)
                points = points.detach()
                if until_broken and broken.any():
                    result[alive[broken]] = points[broken]
                    alive, points, gradient, ball = alive[~broken], points[~broken], gradient[~broken], ball.of(~broken)
                    if len(alive) == 0:
                        return result
                # A gradient that is not a number moves nothing, so that the result stays an image.
                points = ball.project(ball.step(points, gradient.nan_to_num(), step))
            if restarts == 1 and not until_broken:
                return points
            with torch.no_grad():
                value, broken = rate(points, goal[alive])
                value = value.float()
            # A broken image stays broken: it gives way only to another broken one that is worse.
            before = was_broken[alive]
            better = (broken & ~before) | ((broken == before) & (value > worst[alive]))
            changed = alive[better]
            result[changed], worst[changed], was_broken[changed] = points[better], value[better], broken[better]
            if until_broken:
                alive, ball = alive[~broken], ball.of(~broken)
                if len(alive) == 0:
                    return result
    return result


def _gradient(value: Tensor, points: Tensor) -> Tensor:
    """Of the loss at the points; zero where the classifier hands none on."""
    if not value.requires_grad:
        return torch.zeros_like(points)
    (gradient,) = torch.autograd.grad(value.sum(), points, materialize_grads=True)
    return gradient


@contextlib.contextmanager
def frozen(model: Classifier) -> Iterator[None]:
    """No weight of the model asks for a gradient inside the block, so none is computed for an attack."""
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    learning = [p for p in parameters if p.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
