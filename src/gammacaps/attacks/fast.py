"""PGD at the speed of the GPU: one step is recorded for each size of batch, and replayed as often as there are steps.

The network's pass is that of its kernels where it has some, else its own forward and autograd: any classifier will do.
Where this can't run, `fast_attack` gives None, and the plain attack is used.
"""

import importlib.util

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.attacks.losses import LOSSES, Against, AttackLoss, loss_of
from gammacaps.replay.kept_recordings import Room, room_of
from gammacaps.replay.passes import autocast_dtype, new_pass
from gammacaps.replay.recording import Recording
from gammacaps.replay.trial import may_replay

# Batches are filled up to a multiple of this, so that few sizes need a recording of their own.
BATCHES = 64


class FastAttack:
    """The steps of PGD in the L-inf ball for batches of one size, in memory that is used again at every call."""

    def __init__(
        self,
        model: nn.Module,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        loss: str | Against,
        stay: bool,
        sign: float = 1.0,
        room: Room | None = None,
    ) -> None:
        """Up the loss for sign 1, down for sign -1; of an `Against` the function counts, the scores come with `run`."""
        device = next(model.parameters()).device
        with torch.no_grad():
            self.classes = model(torch.zeros(1, *shape[1:], device=device)).shape[1]
        self.work, self.stay, self.sign = new_pass(model, shape[0], dtype), stay, sign
        self.others = torch.zeros(shape[0], self.classes, device=device)
        self.loss = loss if isinstance(loss, str) else Against(loss.function, self.others)
        self.x, self.low, self.high = (torch.zeros(shape, device=device) for _ in range(3))
        self.labels = torch.zeros(shape[0], dtype=torch.int64, device=device)
        self.size = torch.zeros(1, device=device)
        self.room = room or Room(device)
        self.recording: Recording | None = None

    def run(
        self,
        start: Tensor,
        low: Tensor,
        high: Tensor,
        labels: Tensor,
        size: float,
        steps: int,
        others: Tensor | None = None,
    ) -> Tensor:
        """`steps` steps of `size` from `start`."""
        with torch.no_grad(), self.room.turn():
            if self.recording is None:
                self.recording = Recording(self.step, self.x.device, self.room.pool)
            for mine, given in ((self.x, start), (self.low, low), (self.high, high), (self.labels, labels)):
                mine[: len(given)].copy_(given)
            if others is not None:
                self.others[: len(others)].copy_(others)
            self.size.fill_(size)
            self.work.refresh()
            for _ in range(steps):
                self.recording.replay()
            return self.x[: len(start)].clone()

    def step(self) -> tuple[Tensor, ...]:
        """One step, of the images in place."""
        if self.loss == "margin":
            margins, grad = self.work.margin(self.x, self.labels, self.sign)
        else:
            scores = self.work.forward(self.x)
            margins = LOSSES["margin"](scores, self.labels)
            grad = self.work.backward(self.sign * loss_gradient(self.loss, scores, self.labels))
        broken = None if not self.stay else margins if self.sign > 0 else -margins
        climb(self.x, grad, self.low, self.high, self.size, broken)
        return ()


def loss_gradient(loss: str | Against, scores: Float[Tensor, "B N"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B N"]:
    """The gradient at the scores of a loss of theirs."""
    leaf = scores.detach().requires_grad_()
    with torch.enable_grad():
        (grad,) = torch.autograd.grad(loss_of(loss)(leaf, labels).sum(), leaf)
    return grad


def climb(x: Tensor, grad: Tensor, low: Tensor, high: Tensor, size: Tensor, stay: Tensor | None) -> None:
    """A step of `size` along the gradient's sign, back between low and high, in place; not where `stay` is above 0."""
    if x.is_cuda and importlib.util.find_spec("triton") is not None:
        from gammacaps.ops.kernels.images import climb as by_kernel

        by_kernel(x, grad.contiguous(), low, high, size, stay)
        return
    # A gradient that is not a number moves nothing.
    moved = (x + size * grad.nan_to_num().sign()).clamp(low, high)
    x.copy_(moved if stay is None else torch.where((stay > 0).view(-1, *(1,) * (x.ndim - 1)), x, moved))


def fast_attack(
    model: object, images: Tensor, loss: str | AttackLoss, norm: str, stay: bool, sign: float = 1.0
) -> FastAttack | None:
    """The fast attack for these images, or None where it can't run."""
    if norm != "linf" or not isinstance(loss, str | Against) or images.dtype != torch.float32:
        return None
    if (room := room_of(model, images)) is None:
        return None
    assert isinstance(model, nn.Module)
    if next(model.parameters(), images).device != images.device or not may_replay(model, images, room):
        return None
    shape = (-(-len(images) // BATCHES) * BATCHES, *images.shape[1:])
    dtype = autocast_dtype(images.device)
    key = ("pgd", shape, dtype, loss if isinstance(loss, str) else loss.function, stay, sign)
    return room.get(key, lambda: FastAttack(model, shape, dtype, loss, stay, sign, room))
