"""The way uphill from one start: what an attack climbs, and the steps, one by one or by the engine of `fast`."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gammacaps.attacks.balls import Ball, LinfBall
from gammacaps.attacks.checks import check_scores
from gammacaps.attacks.fast import FastAttack, fast_attack
from gammacaps.attacks.losses import Against, AttackLoss, loss_of
from gammacaps.data.checks import check_labels
from gammacaps.replay import Replayed, replayed
from gammacaps.replay.kept_recordings import refuse
from gammacaps.replay.recording import CannotRecord


class Slope:
    """A classifier's loss as a landscape over images: uphill leads away from the labels, or towards targets."""

    def __init__(
        self, model: Callable[[Tensor], Tensor], loss: str | AttackLoss, labels: Tensor, targets: Tensor | None
    ) -> None:
        if isinstance(model, Replayed):
            model = model.model
        self.model, self.loss, self.function = model, loss, loss_of(loss)
        self.answer = replayed(model) if isinstance(model, nn.Module) else model
        self.goal = (labels if targets is None else targets).long()  # B
        self.aimed = targets is not None
        self.sign = -1 if self.aimed else 1
        self._checked = False  # the number of classes is known only from the first scores

    def at(self, points: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        """How high each point lies, a point for each of the images `which`, and whether it is broken."""
        goal, scores = self.goal[which], self.answer(points)
        if not self._checked:
            check_scores(scores, goal)
            self._checked = True
        broken = (scores.argmax(dim=1) == goal) == self.aimed
        return self.sign * self.function(scores, goal), broken

    def uphill(self, points: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient at each point, and whether it is broken."""
        points = points.detach().requires_grad_()
        with torch.enable_grad():
            value, broken = self.at(points, which)
            gradient = _gradient(value, points)
        # A gradient that is not a number moves nothing, so that the result stays an image.
        return gradient.nan_to_num(), broken


def ascend(
    slope: Slope,
    ball: Ball,
    points: Tensor,
    which: Tensor,
    *,
    step: float,
    steps: int,
    norm: str,
    until_broken: bool,
) -> tuple[Tensor, Tensor]:
    """`steps` steps of length `step` from the points, those of the images `which`, within the ball around these.

    Gives where they end, and which of them no step has seen broken. With `until_broken` a point goes no further than
    to where it is broken.
    """
    stands = torch.ones(len(points), dtype=torch.bool, device=points.device)
    fast = fast_attack(slope.model, points, slope.loss, norm, until_broken, slope.sign)
    if fast is not None:
        try:
            return _replayed(fast, slope, ball, points, which, step, steps), stands
        except CannotRecord as error:
            assert isinstance(slope.model, nn.Module)
            refuse(slope.model, f"it can't be recorded: {error}")
    ends = points.clone() if until_broken else points
    for _ in range(steps):
        gradient, broken = slope.uphill(points, which[stands] if until_broken else which)
        if until_broken and broken.any():
            place = stands.nonzero().squeeze(1)[broken]
            ends[place], stands[place] = points[broken], False
            points, gradient, ball = points[~broken], gradient[~broken], ball.of(~broken)
            if len(points) == 0:
                return ends, stands
        points = ball.project(ball.step(points, gradient, step))
    if not until_broken:
        return points, stands
    ends[stands] = points
    return ends, stands


def _replayed(
    fast: FastAttack, slope: Slope, ball: Ball, points: Tensor, which: Tensor, step: float, steps: int
) -> Tensor:
    """The same steps by the engine, which leaves broken points where they are by itself."""
    assert isinstance(ball, LinfBall)
    check_labels(slope.goal, len(slope.goal), fast.classes)
    others = slope.loss.others[which] if isinstance(slope.loss, Against) else None
    return fast.run(points, ball.low, ball.high, slope.goal[which], step, steps, others)


def _gradient(value: Tensor, points: Tensor) -> Tensor:
    """Of the loss at the points; zero where the classifier hands none on."""
    if not value.requires_grad:
        return torch.zeros_like(points)
    (gradient,) = torch.autograd.grad(value.sum(), points, materialize_grads=True)
    return gradient
