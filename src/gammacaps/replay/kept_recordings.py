"""Where the recordings of a network are kept: some of them, in memory that they share, one at work at a time."""

import contextlib
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from gammacaps.ops.routing.choice import plain_wanted
from gammacaps.ops.torch_func import transformed
from gammacaps.replay.model_state import fingerprint, why_not_recorded

# Recordings kept for a network; what is larger than the memory of the largest pass is the images that each holds.
KEPT = 16

Kept = TypeVar("Kept")


class Room:
    """The recordings of one network, as it is now; they use the same memory in turn."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
        self.kept: OrderedDict[Hashable, Any] = OrderedDict()
        self.turns = 0  # by which one knows whether another recording has used the memory since
        self._lock, self._done = threading.RLock(), torch.cuda.Event() if device.type == "cuda" else None

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """The recording of this key, made where there is none; the one longest unused is dropped for it."""
        with self._lock:
            if key not in self.kept:
                while len(self.kept) >= KEPT:
                    self.kept.popitem(last=False)
                self.kept[key] = make()
            self.kept.move_to_end(key)
            recording: Kept = self.kept[key]
            return recording

    @contextlib.contextmanager
    def turn(self) -> Iterator[int]:
        """For one thread, on its stream; gives the turn's number."""
        with self._lock:
            if self._done is not None:
                torch.cuda.current_stream(self.device).wait_event(self._done)
            self.turns += 1
            try:
                yield self.turns
            finally:
                if self._done is not None:
                    self._done.record(torch.cuda.current_stream(self.device))


class _Known:
    """What is known of a network: its state when that was seen, its room, and why it must not be used, if so."""

    def __init__(self, state: tuple[object, ...], device: torch.device, refused: str | None) -> None:
        self.state, self.room, self.refused = state, Room(device), refused


_lock = threading.Lock()
_known: "weakref.WeakKeyDictionary[nn.Module, _Known]" = weakref.WeakKeyDictionary()


def room_of(model: object, images: Tensor) -> Room | None:
    """The room of a network for these images, empty after a change of the network; None where it must run plainly."""
    if not isinstance(model, nn.Module) or not images.is_cuda or plain_wanted():
        return None
    if getattr(model, "depends_on_neighbours", False):
        return None
    if transformed(images) or _get_current_dispatch_mode_stack() or torch.cuda.is_current_stream_capturing():
        return None
    return room_for(model, images.device)


def room_for(model: nn.Module, device: torch.device) -> Room | None:
    """The same for whatever images, on any device."""
    with _lock:
        state = (device, *fingerprint(model))
        known = _known.get(model)
        if known is None or known.state != state:
            known = _known[model] = _Known(state, device, why_not_recorded(model))
    if known.refused is not None:
        _say_once(model, known.refused)
        return None
    return known.room


def refuse(model: nn.Module, reason: str) -> None:
    """No further recording of the network as it is now."""
    with _lock:
        if (known := _known.get(model)) is not None:
            known.refused = reason
            known.room.kept.clear()
    _say_once(model, reason)


_said: set[tuple[str, str]] = set()


def _say_once(model: nn.Module, reason: str) -> None:
    """That a network runs plainly."""
    name = type(model).__name__
    if (name, reason) not in _said:
        _said.add((name, reason))
        warnings.warn(f"Passes of this {name} are not replayed but run one by one ({reason}).", stacklevel=5)
