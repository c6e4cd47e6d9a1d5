"""How a network is run in training: the same at each time, or the encoder computed twice."""

import contextlib
import functools
from collections.abc import Iterator

import torch
from torch.utils.checkpoint import checkpoint as checkpointed

from gammacaps.models import Model


def recompute_encoder(model: Model) -> None:
    """Keeps only the images for the gradient of the convolutions: what lies between is computed again when needed."""
    model.encode = functools.partial(checkpointed, model.encode, use_reentrant=False)  # type: ignore[method-assign]


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Inside the block convolutions give the very same sums each time."""
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before
