"""What several corruptions need: a Gaussian filter, and the unit in which MNIST-C counts pixels."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d, pad

SIDE = 28  # of the images that MNIST-C is defined for


def unit(images: Tensor) -> float:
    """How many pixels of these images one of MNIST-C's is, by the shorter side."""
    return min(images.shape[2:]) / SIDE


def smooth(images: Float[Tensor, "B C H W"], sigma: float) -> Float[Tensor, "B C H W"]:
    """Gaussian blur of that deviation in pixels, cut off at four of them, the edges continued."""
    reach = max(1, int(4 * sigma + 0.5))
    places = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    weights = (-0.5 * (places / sigma) ** 2).exp()
    weights = weights / weights.sum()
    flat = images.flatten(0, 1).unsqueeze(1)  # B*C 1 H W
    flat = conv2d(pad(flat, (reach, reach, 0, 0), mode="replicate"), weights.view(1, 1, 1, -1))
    flat = conv2d(pad(flat, (0, 0, reach, reach), mode="replicate"), weights.view(1, 1, -1, 1))
    return flat.view(images.shape)
