"""A module that answers like a classifier, with gradients of the images, by replaying recorded passes."""

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gammacaps.replay.passes import PlainPass, autocast_dtype, new_pass, runs_by_kernels
from gammacaps.replay.recording import CannotRecord, Recording
from gammacaps.replay.rooms import Room, refuse, room_of

# Batches are filled up to one of these sizes, beyond them to a multiple of the last: few sizes need few recordings.
SIZES = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
# Where a network is first replayed, its answers for so many images (not one of the sizes) are held against its own.
TRIED = 13
# So far from its own answers, relative to their size, they may be: by rounding in float32, and in half precision.
LIMIT, HALF_LIMIT = 1e-2, 5e-2


class Replayed(nn.Module):
    """Gives the scores of `model`, and the gradient of the images, at the speed of the GPU; the weights get none.

    For attack libraries, which take it as a model. Where passes can't be replayed, `model` itself is called. The
    weights are those of `model` at each call, its mode and whether autocast is on too.

    >>> import gammacaps, torch
    >>> model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    >>> fast = gammacaps.attacks.replayed(model)
    >>> torch.equal(fast(images[:4]), model(images[:4]))
    True
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        room = room_of(self.model, images)
        if room is None or images.ndim < 2 or len(images) == 0 or images.dtype != torch.float32:
            scores: Tensor = self.model(images)
            return scores
        gradient = torch.is_grad_enabled() and images.requires_grad
        recorded = recorded_pass(self.model, images.detach(), room, gradient=gradient)
        if recorded is None:
            scores = self.model(images)
        elif gradient:
            scores = _Replay.apply(images, recorded)
        else:
            scores = recorded.scores(images)[0]
        return scores


def replayed(model: nn.Module) -> nn.Module:
    """The model as a module that answers alike, on a GPU by replaying recorded passes; once is enough."""
    return model if isinstance(model, Replayed) else Replayed(model)


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


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, recorded: RecordedPass) -> Tensor:
        scores, ctx.turn = recorded.scores(images)
        ctx.recorded = recorded
        ctx.save_for_backward(images)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (images,) = ctx.saved_tensors
        return ctx.recorded.gradient(images, grad, ctx.turn), None


def size_for(count: int) -> int:
    """The size of batch that so many images are filled up to."""
    return next((size for size in SIZES if size >= count), -(-count // SIZES[-1]) * SIZES[-1])


def recorded_pass(model: nn.Module, images: Tensor, room: Room, *, gradient: bool) -> RecordedPass | None:
    """A recorded pass that these images fit into; None where the network turns out to be none that can be replayed."""
    if not may_replay(model, images, room):
        return None
    return kept_pass(model, images, room, gradient=gradient)


def kept_pass(model: nn.Module, images: Tensor, room: Room, *, gradient: bool) -> RecordedPass:
    """A recorded pass that these images fit into, from the room."""
    batch, dtype = size_for(len(images)), autocast_dtype(images.device)
    key = ("pass", batch, tuple(images.shape[1:]), dtype, gradient)
    return room.get(key, lambda: RecordedPass(model, images, batch, room, gradient=gradient))


def may_replay(model: nn.Module, images: Tensor, room: Room) -> bool:
    """Whether replaying gives what the network gives: tried once, on some of the images, before it is relied on."""
    key = ("tried", tuple(images.shape[1:]), autocast_dtype(images.device))
    reason = room.get(key, lambda: None if runs_by_kernels(model) else why_other_answers(model, images[:TRIED], room))
    if reason is not None:
        refuse(model, reason)
    return reason is None


def why_other_answers(model: nn.Module, images: Tensor, room: Room) -> str | None:
    """In which way a replay of the network would not give what the network gives; None where it does."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with torch.random.fork_rng([room.device] if room.device.type == "cuda" else []), torch.no_grad():
            return _compared(model, images, room, buffers)
    except CannotRecord as error:
        return f"it can't be recorded: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    finally:
        for buffer, before in buffers:
            buffer.copy_(before)


def _compared(model: nn.Module, images: Tensor, room: Room, buffers: list[tuple[Tensor, Tensor]]) -> str | None:
    dtype = autocast_dtype(images.device)
    limit = LIMIT if dtype == torch.float32 else HALF_LIMIT
    plain = PlainPass(model, dtype)
    scores = plain.forward(images)
    if scores.ndim != 2 or len(scores) != len(images):
        return f"it does not give scores (B, N) but {tuple(scores.shape)}"
    grad = torch.randn_like(scores)
    gradient = plain.backward(grad)
    with _waits() as waits:
        again = plain.forward(images)
    if _apart(again, scores) > limit:
        return "it gives other scores for the same images each time"
    if any(not torch.equal(now, before) for now, before in buffers):
        return "a pass changes its buffers"
    if waits:
        return "it makes the host wait for the device"
    recorded = kept_pass(model, images, room, gradient=True)
    again, turn = recorded.scores(images)
    if _apart(again, scores) > limit or _apart(recorded.gradient(images, grad, turn), gradient) > 4 * limit:
        return "its scores hang on how many images there are, or on something else that a recording misses"
    others = (1 - images).flip(0)
    if _apart(recorded.scores(others)[0], plain.forward(others)) > limit:
        return "it takes other ways for other images"
    return None


@contextlib.contextmanager
def _waits() -> Iterator[list[str]]:
    """The list holds something after the block if this thread had to wait for the device in it, as in no recording."""
    said: list[str] = []
    if not torch.cuda.is_available():
        yield said
        return
    before, thread = torch.cuda.get_sync_debug_mode(), threading.get_ident()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        if threading.get_ident() == thread and "called a synchronizing" in str(message):
            said.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield said
        finally:
            torch.cuda.set_sync_debug_mode(before)


def _apart(ours: Tensor, right: Tensor) -> float:
    """Relative to the size of what is right."""
    right = right.double()
    return ((ours.double() - right).norm() / right.norm().clamp_min(1e-12)).item()
