"""A second network on the weights of the first, to change one without the other."""

import copy
from typing import TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def on_same_weights(model: Module) -> Module:
    """The same network on the very same weights; hooks, iterations and the like are its own."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
