"""Each capsule of a layer switched off by itself: which classes suffer?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.explain.ablation import hook_on_capsules
from gammacaps.explain.activate import check_capsules
from gammacaps.models import CapsuleModel, has_capsules
from gammacaps.models.shared_weights import on_same_weights
from gammacaps.short_repr import short_repr

TOGETHER = 32  # capsules that are switched off in one pass, each in a copy of its own
IMAGES = 16  # a pass: with the copies a few hundred, since routing matrix capsules takes 4 MB for each


@dataclass(frozen=True)
class Suffers:
    """A class whose images are answered rightly less often without a capsule."""

    label: int
    before: float  # the share that is right with all capsules on
    without: float

    __repr__ = short_repr

    @property
    def lost(self) -> float:
        return self.before - self.without


@torch.no_grad()
def accuracies_without_each(
    model: nn.Module, layer: int | str, capsules: Sequence[int], images: Tensor, labels: Int[Tensor, "M"]
) -> tuple[Float[Tensor, "N"], Float[Tensor, "K N"]]:
    """The share of each class's images that is right, with all capsules on and without each of K; NaN without images.

    What lies below the layer is computed once: behind it each image stands once for every capsule that is off.
    """
    network, index, count = check_capsules(model, layer)
    if index == len(network.layers) - 1:
        raise InputError("Class capsules can't be switched off: there is no layer above them.")
    for capsule in capsules:
        if not 0 <= capsule < count:
            name = network.layers[index]
            raise InputError(f"There is no capsule {capsule} in layer '{name}': its capsules are 0 to {count - 1}.")
    device = next(network.parameters()).device
    several = on_same_weights(network)
    off: list[int | None] = [None, *capsules]
    right = torch.zeros(len(off), len(images), dtype=torch.bool)
    for first in range(0, len(off), TOGETHER):
        which = slice(first, first + TOGETHER)
        hook = several.capsule_modules[index].register_forward_hook(_repeater(off[which]))
        for start in range(0, len(images), IMAGES):
            part = slice(start, start + IMAGES)
            scores = several(images[part].to(device))  # K*B N
            taken = scores.argmax(1).view(len(off[which]), -1).cpu()  # K B
            right[which, part] = taken == labels[part].cpu()
        hook.remove()
    classes = range(network.classes)
    shares = torch.stack([right[:, labels.cpu() == k].double().mean(1) for k in classes], dim=1)  # K+1 N
    return shares[0], shares[1:]


def can_switch_off(model: nn.Module) -> bool:
    """Whether the network says which modules make its capsules; one of a user's own need not."""
    return has_capsules(model) and type(model).capsule_modules is not CapsuleModel.capsule_modules


def sufferers(before: Float[Tensor, "N"], without: Float[Tensor, "N"], most: int = 3) -> list[Suffers]:
    """The classes whose accuracy falls most without a capsule, the most first; none where none falls."""
    pairs = zip(before.tolist(), without.tolist(), strict=True)
    lost = [Suffers(k, was, now) for k, (was, now) in enumerate(pairs) if was > now]
    return sorted(lost, key=lambda one: -one.lost)[:most]


def _repeater(off: Sequence[int | None]) -> Any:
    """A hook after which a batch stands there once for each of `off`, with that capsule at zero; None: with all on."""

    def repeated(tensor: Tensor) -> Tensor:  # B I or B I d to K*B I or K*B I d
        copies = tensor.repeat(len(off), *[1] * (tensor.dim() - 1))
        for k, capsule in enumerate(off):
            if capsule is not None:
                copies[k * len(tensor) : (k + 1) * len(tensor), capsule] = 0.0
        return copies

    return hook_on_capsules(repeated)
