"""Weights that ask for no gradient for a while."""

import contextlib
from collections.abc import Callable, Iterator

from torch import Tensor, nn


@contextlib.contextmanager
def frozen(model: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """No weight of the model asks for a gradient inside the block, so none is computed."""
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    learning = [p for p in parameters if p.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
