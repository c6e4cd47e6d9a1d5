"""Work on a GPU, recorded once as a CUDA graph and replayed without a word to the host."""

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Work = Callable[[], tuple[Tensor, ...]]

# While one thread records, no other may: recording empties caches and waits for the device.
_one_at_a_time = threading.Lock()


class CannotRecord(Exception):
    """The work asks the host in between, or does something else that a graph can't hold."""


class Recording:
    """`replay` does the work again, on the memory that it read and wrote when it was recorded.

    `outputs` is written anew by each replay: who wants to keep it copies it. Before it is recorded, it
    or `warm_up` is run once, for kernels to be compiled and libraries to be ready. Elsewhere than on a GPU the work
    itself is called, and its outputs are written to the same memory, so that it behaves alike.
    """

    def __init__(
        self, work: Work, device: torch.device, pool: Any = None, warm_up: Callable[[], object] | None = None
    ) -> None:
        self.graph: torch.cuda.CUDAGraph | None = None
        self._outputs: tuple[Tensor, ...] | None
        if device.type == "cuda":
            with _one_at_a_time, torch.cuda.device(device), torch.inference_mode(False):
                self.graph, self._outputs = _recorded(work, pool, warm_up or work)
        else:
            self.work, self._outputs = work, None

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """What the work gave the last time."""
        if self._outputs is None:
            self._outputs = self.work()
        return self._outputs

    def replay(self) -> tuple[Tensor, ...]:
        """The outputs after the work was done again."""
        if self.graph is not None:
            self.graph.replay()
        elif self._outputs is None:
            self._outputs = self.work()
        else:
            for kept, new in zip(self._outputs, self.work(), strict=True):
                kept.copy_(new)
        return self.outputs


def _recorded(work: Work, pool: Any, warm_up: Callable[[], object]) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        warm_up()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        # Other threads load images and talk to other processes: only what this one does may disturb the recording.
        with _no_garbage_collection(), torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            outputs = work()
    except RuntimeError as error:
        _recover()
        raise CannotRecord(_first_line(error)) from error
    # What matrix products work in stays with the stream else, and the next recording would take as much again.
    torch._C._cuda_clearCublasWorkspaces()
    return graph, outputs


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """An old recording that is freed while another is made would break that off."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _first_line(error: BaseException) -> str:
    """Of the error that the others followed."""
    while error.__context__ is not None:
        error = error.__context__
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _recover() -> None:
    """After a recording that was broken off: torch's random numbers wait for its end, which that of another brings."""
    torch.cuda.synchronize()
    small = torch.zeros(1, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode="thread_local"):
        small.add_(1)
