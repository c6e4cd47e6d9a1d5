"""The batches of training: which images per step learns from, and how they come to the device in time."""

import functools
import itertools
from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from gammacaps.data import DataSet, StoredSet
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.augment import augmented

AHEAD = 3  # batches read from disk before they are asked for


def batch_of(step: int, count: int, config: TrainConfig) -> Tensor:
    """Which images per step learns from: each epoch in a new order, a last part batch left out."""
    size = min(config.batch, count)
    epoch, place = divmod(step, count // size)
    return _order(epoch, count, config.seed)[place * size : (place + 1) * size]


@functools.lru_cache(maxsize=2)
def _order(epoch: int, count: int, seed: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + 500_009 + epoch))


def batches(
    data: DataSet | StoredSet, config: TrainConfig, own: slice, device: torch.device, first: int
) -> Generator[tuple[Tensor, Tensor]]:
    """The images and labels that this process has `own` of each batch, from the step `first` on, without end."""
    if isinstance(data, StoredSet):
        yield from _read_ahead(data, config, own, device, first)
        return
    size = min(config.batch, len(data.labels))
    images, labels = data.images.to(device), data.labels.to(device)
    for step in itertools.count(first):
        index = batch_of(step, len(images), config)[own].to(device)
        yield augmented(images[index], config, step, size, own), labels[index]


def _read_ahead(
    data: StoredSet, config: TrainConfig, own: slice, device: torch.device, first: int
) -> Generator[tuple[Tensor, Tensor]]:
    """The same of a set on disk: a thread reads the next batches while the network learns from this one."""
    size = min(config.batch, len(data.labels))
    pinned = device.type == "cuda"  # memory that the GPU fetches from without the processor's help

    def read(step: int) -> tuple[Tensor, Tensor]:
        index = batch_of(step, len(data.labels), config)[own]
        images, labels = data.images[index], data.labels[index]
        return (images.pin_memory(), labels.pin_memory()) if pinned else (images, labels)

    # Each thread starts on the first GPU; it must stay with its process's.
    start = functools.partial(torch.cuda.set_device, torch.cuda.current_device()) if pinned else None
    with ThreadPoolExecutor(1, "batches", initializer=start) as pool:
        coming = deque(pool.submit(read, first + k) for k in range(AHEAD))
        try:
            for step in itertools.count(first + AHEAD):
                images, labels = coming.popleft().result()
                coming.append(pool.submit(read, step))
                images = augmented(images.to(device, non_blocking=True), config, step - AHEAD, size, own)
                yield images, labels.to(device, non_blocking=True)
        finally:
            pool.shutdown(cancel_futures=True)
