"""Images scaled one by one to mean 0 and deviation 1, as Hinton, Sabour and Frosst (2018) scale smallNORB's."""

import torch
from jaxtyping import Float32
from torch import Tensor

SPAN = 32  # deviations from 0 to 1: an image's farthest pixel lies 12.2 from its mean on smallNORB, and eps is 0.5
LEAST = 1e-3  # a deviation below which an image shows nothing, and is not blown up


def scaled(images: Float32[Tensor, "N C H W"]) -> Float32[Tensor, "N C H W"]:
    """Each image (x - its mean) / its deviation, told as 0.5 + that / SPAN: so it stays in [0, 1].

    A radius eps in deviations is eps / SPAN here, the same for every image; in pixels it is eps times the image's own
    deviation, another for each. What lies beyond -SPAN / 2 and SPAN / 2 deviations is cut off.
    """
    result = torch.empty_like(images)
    for part, made in zip(images.split(4096), result.split(4096), strict=True):
        mean = part.mean(dim=(1, 2, 3), keepdim=True)
        deviation = part.std(dim=(1, 2, 3), keepdim=True, correction=0).clamp_min(LEAST)
        made.copy_((0.5 + (part - mean) / (deviation * SPAN)).clamp(0, 1))
    return result
