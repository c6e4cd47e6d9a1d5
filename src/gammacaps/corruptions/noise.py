"""Noise: too little light, and broken pixels."""

import torch
from torch import Tensor

PHOTONS = 3  # that a white pixel catches on average
BROKEN = 0.17  # the share of pixels


def shot_noise(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each pixel counts photons, of which there are few: a Poisson number with the pixel's mean."""
    return torch.poisson(images.cpu() * PHOTONS, generator).to(images) / PHOTONS


def impulse_noise(images: Tensor, generator: torch.Generator) -> Tensor:
    """Salt and pepper: some pixels, each channel by itself, are black or white whatever they show."""
    broken, white = torch.rand(2, *images.shape, generator=generator).to(images.device)
    return torch.where(broken < BROKEN, (white < 0.5).to(images), images)
