"""How a network is run in training: the same at each time, or EM routing compiled, or the encoder computed twice."""

import contextlib
import functools
from collections.abc import Iterator

import torch
from torch.utils.checkpoint import checkpoint as checkpointed

from gammacaps.models import MatrixCapsNet, Model
from gammacaps.nn import MatrixCapsules
from gammacaps.nn.matrix import vote_and_route


def compile_routing(model: Model, backend: str = "inductor") -> None:
    """Compiles EM routing, which has no kernels of its own.

    Only the function is compiled, its weights being arguments: compiled as a module, some versions of torch keep the
    graph made while an attack had the weights frozen, and the weights then silently stop learning.
    """
    if isinstance(model, MatrixCapsNet):
        compiled = torch.compile(vote_and_route, backend=backend)
        for layer in model.routed:
            assert isinstance(layer, MatrixCapsules)
            layer.vote_and_route = compiled


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
