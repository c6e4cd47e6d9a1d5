"""Where in an image a capsule looks: the pixels on which its activation depends most."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.explain.activate import activations_of, check_capsules
from gammacaps.explain.batches import BATCH, in_batches

TINT = (1.0, 0.45, 0.0)  # orange, which stands out from greys
STRENGTH = 0.75  # of the tint where a capsule looks most, so that the image shines through


def looks_at(
    model: nn.Module,
    images: Float[Tensor, "M C H W"],
    layer: str | int,
    capsules: Sequence[int],
    *,
    batch: int = BATCH,
) -> Float[Tensor, "M H W"]:
    """How much the activation of a capsule, one for each image, changes with each pixel: 1 where it changes most.

    The gradient's absolute value, the largest over the channels, averaged over 3 x 3 pixels. All 0 where no pixel
    counts. `tinted` shows it on the image.
    """
    network, index, count = check_capsules(model, layer)
    check_images(images)
    if len(capsules) != len(images):
        raise InputError(f"{len(images)} images need {len(images)} capsules, one for each, not {len(capsules)}.")
    for capsule in capsules:
        if not 0 <= capsule < count:
            name = network.layers[index]
            raise InputError(f"There is no capsule {capsule} in layer '{name}': its capsules are 0 to {count - 1}.")
    found = []
    chosen = torch.tensor(list(capsules)).split(batch)
    for part, goal in zip(in_batches(network, images, batch), chosen, strict=True):
        with torch.enable_grad():
            leaf = part.detach().clone().requires_grad_()
            (gradient,) = torch.autograd.grad(activations_of(network, index, leaf, goal.to(leaf.device)).sum(), leaf)
        change = gradient.nan_to_num().abs().amax(1, keepdim=True)  # B 1 H W
        smooth = F.avg_pool2d(change, 3, stride=1, padding=1, count_include_pad=False).squeeze(1)
        found.append((smooth / smooth.amax((1, 2), keepdim=True).clamp_min(1e-12)).float().cpu())
    return torch.cat(found)


def tinted(images: Float[Tensor, "M C H W"], looks: Float[Tensor, "M H W"]) -> Float[Tensor, "M 3 H W"]:
    """Images in orange where a capsule looks; those of other than 3 channels as the grey of their mean."""
    images = images.float().cpu()
    if images.shape[1] != 3:
        images = images.mean(1, keepdim=True).expand(-1, 3, -1, -1)
    share = STRENGTH * looks.unsqueeze(1)  # M 1 H W
    return (1 - share) * images + share * torch.tensor(TINT).view(3, 1, 1)
