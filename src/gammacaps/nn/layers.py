"""The layers of one kind among a module's parts."""

from typing import TypeVar

from torch import nn

Layer = TypeVar("Layer", bound=nn.Module)


def layers_of(module: nn.Module, kind: type[Layer]) -> list[Layer]:
    """All of them in the order of the network, the module itself among them."""
    return [part for part in module.modules() if isinstance(part, kind)]
