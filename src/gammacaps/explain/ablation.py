"""Capsules switched off: what becomes of an image's tree without them?"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.explain.activate import check_capsules
from gammacaps.models import CapsuleModel, has_capsules
from gammacaps.models.shared_weights import on_same_weights


def without(model: nn.Module, capsules: Iterable[tuple[int, int]]) -> CapsuleModel:
    """The same network on the same weights, with capsules (layer's index, capsule) switched off.

    Such a capsule's pose is zero before the next layer's routing, whatever the image shows: its votes are zero vectors,
    and its activation is 0. A zero vote still takes part in routing, as in an image in which the capsule is silent.
    """
    chosen: dict[int, set[int]] = defaultdict(set)
    for l, capsule in capsules:
        network, index, count = check_capsules(model, l)
        if not 0 <= capsule < count:
            name = network.layers[index]
            raise InputError(f"There is no capsule {capsule} in layer '{name}': its capsules are 0 to {count - 1}.")
        if index == len(network.layers) - 1:
            raise InputError("Class capsules can't be switched off: there is no layer above them.")
        chosen[index].add(capsule)
    assert has_capsules(model)
    silenced = on_same_weights(model)
    modules = silenced.capsule_modules
    for index, which in chosen.items():
        modules[index].register_forward_hook(_silencer(sorted(which)))
    return silenced


def _silencer(which: list[int]) -> Any:
    """A hook that sets these capsules of a layer's output to zero: poses, and activations where the layer has them."""

    def silenced(tensor: Tensor) -> Tensor:  # B I or B I d
        off = torch.tensor(which, device=tensor.device)
        return tensor.index_fill(1, off, 0.0)

    return hook_on_capsules(silenced)


def hook_on_capsules(change: Callable[[Tensor], Tensor]) -> Any:
    """A hook that changes a layer's capsules: poses (B, I, d), and activations (B, I) where the layer has them."""

    def hook(module: nn.Module, given: object, made: Any) -> Any:
        if isinstance(made, Tensor):
            return change(made)
        fields = {name: change(getattr(made, name)) for name in ("poses", "activations") if hasattr(made, name)}
        return made._replace(**fields)

    return hook
