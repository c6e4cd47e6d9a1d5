"""Several processes that work as one: what only the first does, what each does, and how their results come together.

All of it is torch.distributed between processes that torchrun started. A process on its own does everything itself.
"""

import contextlib
import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from gammacaps.distributed.launch import launch
from gammacaps.distributed.rendezvous import fresh_store
from gammacaps.environment import pick_device
from gammacaps.errors import InputError

T = TypeVar("T")
S = TypeVar("S")

# torchrun sees a process that dies; waiting is for a slow one, such as the first with the checks of an evaluation.
PATIENCE = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Processes:
    """This process's rank among `count`. Every process calls the same methods in the same order."""

    rank: int = 0
    count: int = 1

    def first(self, function: Callable[[], T]) -> T:
        """The first process calls the function, and all get what it gave, or its error."""
        if self.count == 1:
            return function()
        answer: list[Any] = [None, None]
        if self.rank == 0:
            answer = _tried(function)
        dist.broadcast_object_list(answer, src=0)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]

    def each(self, function: Callable[[], T]) -> T:
        """Every process calls the function and has its own answer; an error of one is the error of all."""
        if self.count == 1:
            return function()
        value, error = _tried(function)
        for each in self._gathered(error):
            if each is not None:
                raise each
        return value

    def map(self, function: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """What the function gives for each item, in the items' order; a process calls it for every `count`-th item."""
        if self.count == 1:
            return [function(item) for item in items]
        own = self.each(lambda: [function(item) for item in items[self.rank :: self.count]])
        by_process = self._gathered(own)
        return [by_process[place % self.count][place // self.count] for place in range(len(items))]

    def most(self, *numbers: float) -> tuple[float, ...]:
        """The largest of each number over the processes."""
        if self.count == 1:
            return numbers
        shared = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(shared, dist.ReduceOp.MAX)
        return tuple(shared.tolist())

    def total(self, values: Tensor) -> Tensor:
        """The sum over the processes."""
        if self.count == 1:
            return values
        shared = values.cpu()
        dist.all_reduce(shared)
        return shared.to(values.device)

    def same(self, value: object) -> bool:
        """Whether all processes have the same value."""
        return self.count == 1 or all(other == value for other in self._gathered(value))

    def _gathered(self, value: T) -> list[T]:
        gathered: list[Any] = [None] * self.count
        dist.all_gather_object(gathered, value)
        return gathered


ALONE = Processes()


def _tried(function: Callable[[], T]) -> list[Any]:
    """What a function gave, and the sentence for the user that it raised instead."""
    try:
        return [function(), None]
    except InputError as error:
        return [None, error]


@contextlib.contextmanager
def joined() -> Iterator[Processes]:
    """This process among those that torchrun started, if it did."""
    here = launch()
    if here.count == 1:
        yield ALONE
        return
    backends = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backends, store=fresh_store(), rank=here.rank, world_size=here.count, timeout=PATIENCE)
    try:
        yield Processes(here.rank, here.count)
    except InputError:
        dist.destroy_process_group()
        raise
    # After any other error the processes may not be together any more, and to leave them could take forever.
    dist.destroy_process_group()


def own_device(name: str) -> torch.device:
    """The device of that name; of several processes on GPUs each takes one of its own."""
    device, here = pick_device(name), launch()
    if device.type == "cpu" or here.count == 1:
        return device
    if ":" in name:
        raise InputError(f"Each of {here.count} processes takes a GPU of its own, not all {name}: use --device cuda.")
    if here.beside > torch.cuda.device_count():
        raise InputError(
            f"{here.beside} processes were started on a machine with {torch.cuda.device_count()} GPUs: "
            f"use torchrun --nproc-per-node {torch.cuda.device_count()}, or --device cpu."
        )
    torch.cuda.set_device(here.place)  # so that "cuda" is this one from now on
    return device
