"""Many images through a network, batch by batch, and the names of its classes."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.models import CapsuleModel

BATCH = 100  # images per pass: the couplings of matrix capsules take 4 MB an image


def activations_in_batches(
    network: CapsuleModel, index: int, images: Float[Tensor, "M C H W"], batch: int
) -> Iterator[Tensor]:
    """The activations (B, n) of a layer, batch by batch."""
    for part in in_batches(network, images, batch):
        with torch.no_grad():
            yield network.parse(part, couplings=False).activations[index].cpu()


def in_batches(model: nn.Module, images: Float[Tensor, "M C H W"], batch: int) -> Iterator[Tensor]:
    """Images (B, C, H, W), batch by batch, as and where the network's weights are."""
    if batch < 1:
        raise InputError(f"A batch has at least 1 image, not {batch}.")
    weight = next(model.parameters())
    for part in images.split(batch):
        yield part.to(weight)


def named(class_names: Sequence[str] | None, count: int) -> list[str]:
    """The names of the classes, or their numbers."""
    if class_names is None:
        return [str(k) for k in range(count)]
    if len(class_names) != count:
        raise InputError(f"{count} classes need {count} names, not {len(class_names)}: give one for each.")
    return list(class_names)
