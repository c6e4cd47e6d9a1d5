"""The attack on capsules at the speed of the GPU: one step, recorded for each size of batch and replayed."""

from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gammacaps.attacks.balls import LinfBall
from gammacaps.attacks.fast import climb
from gammacaps.models import CapsuleModel
from gammacaps.replay.kept_recordings import Room, refuse, room_of
from gammacaps.replay.passes import autocast_dtype, new_pass
from gammacaps.replay.recorded_pass import size_for
from gammacaps.replay.recording import CannotRecord, Recording
from gammacaps.replay.trial import may_replay

LOOK = 4  # steps between looks at which rows are left: a look makes the host wait


class CapsuleSteps:
    """Steps that make one capsule of each row longer or shorter, for batches of one size, in memory used again."""

    def __init__(self, model: CapsuleModel, layer: int, batch: int, dtype: torch.dtype, room: Room) -> None:
        self.room, self.batch = room, batch
        self.work = new_pass(model, batch, dtype, layer)
        shape = (batch, *model.image_shape)
        self.x, self.low, self.high = (torch.zeros(shape, device=room.device) for _ in range(3))
        self.capsules = torch.zeros(batch, 1, dtype=torch.int64, device=room.device)
        self.direction, self.until, self.best, self.there = torch.zeros(4, batch, device=room.device)
        self.size, self.passes = torch.zeros(2, 1, device=room.device)
        self.recording: Recording | None = None

    def run(
        self,
        points: Tensor,
        ball: LinfBall,
        capsules: Tensor,
        direction: Tensor,
        until: Tensor,
        sizes: list[float],
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """A step of each size; gives the points, the best of direction * length, which are there, and the passes."""
        count = len(points)
        with torch.no_grad(), self.room.turn():
            if self.recording is None:
                self.recording = Recording(self.step, self.room.device, self.room.pool)
            self.there.fill_(1)  # rows that no image fills
            self.best.fill_(-torch.inf)
            self.passes.zero_()
            given = (points, ball.low, ball.high, capsules.unsqueeze(1), direction, until, torch.zeros_like(until))
            mine = (self.x, self.low, self.high, self.capsules, self.direction, self.until, self.there)
            for tensor, value in zip(mine, given, strict=True):
                tensor[:count].copy_(value)
            self.work.refresh()
            for size in sizes:
                self.size.fill_(size)
                self.recording.replay()
            there = self.there[:count] > 0
            return self.x[:count].clone(), self.best[:count].clone(), there, int(self.passes.item())

    def step(self) -> tuple[Tensor, ...]:
        """One step: a row that is there stays as it is."""
        lengths = self.work.forward(self.x)  # B n
        value = self.direction * lengths.gather(1, self.capsules).squeeze(1)
        self.passes += (1 - self.there).sum()
        self.best.copy_(torch.maximum(self.best, value))
        upward = self.direction > 0
        self.there.copy_(torch.maximum(self.there, ((value.abs() > self.until) == upward).float()))
        grad = torch.zeros_like(lengths).scatter_(1, self.capsules, self.direction.unsqueeze(1).to(lengths.dtype))
        climb(self.x, self.work.backward(grad), self.low, self.high, self.size, self.there)
        return ()


def pushed(
    model: CapsuleModel,
    layer: int,
    images: Float[Tensor, "B C H W"],
    points: Float[Tensor, "B C H W"],
    capsules: Int[Tensor, "B"],
    upward: Bool[Tensor, "B"],
    until: Float[Tensor, "B"],
    eps: float,
    sizes: list[float],
) -> tuple[Float[Tensor, "B"], int] | None:
    """What `push` gives, by replayed steps of these sizes; None where they can't run."""
    room = room_of(model, images)
    if room is None or images.dtype != torch.float32 or not may_replay(model, images, room):
        return None
    direction = torch.where(upward, 1.0, -1.0).to(images)
    best = torch.full_like(direction, -torch.inf)
    ball, alive, passes = LinfBall(images, eps), torch.arange(len(images), device=images.device), 0
    dtype = autocast_dtype(images.device)
    for first in range(0, len(sizes), LOOK):
        batch = size_for(len(alive))
        key = ("capsules", layer, batch, dtype)
        steps = room.get(key, partial(CapsuleSteps, model, layer, batch, dtype, room))
        part = sizes[first : first + LOOK]
        given = (points, ball, capsules[alive], direction[alive], until[alive], part)
        try:
            points, reached, there, spent = steps.run(*given)
        except CannotRecord as error:
            refuse(model, f"it can't be recorded: {error}")
            return None
        best[alive] = best[alive].maximum(reached)
        passes += spent
        if there.all():
            break
        alive, points, ball = alive[~there], points[~there], ball.of(~there)
    return best.abs(), passes
