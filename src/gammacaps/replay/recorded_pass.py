"""A pass recorded for batches of one size: scores, and then the image's gradient, with other passes in between."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.replay.kept_recordings import Room
from gammacaps.replay.passes import autocast_dtype, new_pass
from gammacaps.replay.recording import Recording

# Batches are filled up to one of these sizes, beyond them to a multiple of the last: few sizes need few recordings.
SIZES = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


class RecordedPass:
    """Passes of one network for batches of one size: scores, and the image's gradient from that of the scores."""

    def __init__(self, model: nn.Module, images: Tensor, batch: int, room: Room, *, gradient: bool) -> None:
        dtype = autocast_dtype(images.device)
        self.room, self.work = room, new_pass(model, batch, dtype)
        self.x = torch.zeros(batch, *images.shape[1:], device=images.device)
        how = images.device, room.pool
        with torch.no_grad():
            self.forward = Recording(lambda: (self.work.forward(self.x),), *how, warm_up=self._both)
            self.grad = torch.zeros_like(self.forward.outputs[0])
            if gradient:  # of the pass that was recorded last: there is no other that it could be tried on
                self.backward = Recording(lambda: (self.work.backward(self.grad),), *how, warm_up=lambda: None)

    def scores(self, images: Float[Tensor, "B *shape"]) -> tuple[Float[Tensor, "B N"], int]:
        """The scores, and the turn in which they were computed."""
        with self.room.turn() as turn:
            return self._pass(images)[: len(images)].clone(), turn

    def gradient(
        self, images: Float[Tensor, "B *shape"], grad: Float[Tensor, "B N"], turn: int
    ) -> Float[Tensor, "B *shape"]:
        """The image's gradient; if another pass came after that turn, the scores are computed again for it."""
        with self.room.turn() as now:
            if now != turn + 1:
                self._pass(images)
            self.grad[: len(grad)].copy_(grad)
            return self.backward.replay()[0][: len(images)].clone()

    def _both(self) -> None:
        scores = self.work.forward(self.x)
        self.work.backward(torch.zeros_like(scores))

    def _pass(self, images: Tensor) -> Tensor:
        self.x[: len(images)].copy_(images.detach())
        self.work.refresh()
        return self.forward.replay()[0]


def size_for(count: int) -> int:
    """The size of batch that so many images are filled up to."""
    return next((size for size in SIZES if size >= count), -(-count // SIZES[-1]) * SIZES[-1])


def kept_pass(model: nn.Module, images: Tensor, room: Room, *, gradient: bool) -> RecordedPass:
    """A recorded pass that these images fit into, from the room."""
    batch, dtype = size_for(len(images)), autocast_dtype(images.device)
    key = ("pass", batch, tuple(images.shape[1:]), dtype, gradient)
    return room.get(key, lambda: RecordedPass(model, images, batch, room, gradient=gradient))
