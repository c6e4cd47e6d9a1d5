"""May a network be replayed? What can be seen of it is in `model_state.py`; the rest is tried once on a few images."""

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.replay.kept_recordings import Room, refuse
from gammacaps.replay.passes import PlainPass, autocast_dtype, runs_by_kernels
from gammacaps.replay.recorded_pass import kept_pass
from gammacaps.replay.recording import CannotRecord

# Where a network is first replayed, its answers for so many images (not one of the sizes) are held against its own.
TRIED = 13
# So far from its own answers, relative to their size, they may be: by rounding in float32, and in half precision.
LIMIT, HALF_LIMIT = 1e-2, 5e-2
# One thread at a time looks for waits: how torch warns of them is set for the whole process.
_looking = threading.Lock()


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
        return "its scores depend on how many images there are, or on something else that a recording misses"
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
    thread = threading.get_ident()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        if threading.get_ident() == thread and "called a synchronizing" in str(message):
            said.append(str(message))

    with _looking, warnings.catch_warnings():
        before = torch.cuda.get_sync_debug_mode()
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
