"""Pictures taken from another place: sheared, smaller, turned, moved. What comes in from outside is black."""

import torch
from torch import Tensor

from gammacaps.corruptions.smoothing import unit
from gammacaps.ops.placing import resampled

ANGLE = 0.4  # radians, of the shear and the turn
SMALLER = 0.7
SHIFT = 3.0  # of 28 pixels, in both directions


def shear(images: Tensor, generator: torch.Generator) -> Tensor:
    """Slanted to one side or the other, and a little stretched."""
    angle = ANGLE * _side(len(images), generator)
    zero, one = torch.zeros_like(angle), torch.ones_like(angle)
    return _from(images, [[one, -angle.sin(), zero], [zero, angle.cos(), zero]])


def rotate(images: Tensor, generator: torch.Generator) -> Tensor:
    """Turned by 23 degrees to one side or the other."""
    angle = ANGLE * _side(len(images), generator)
    zero = torch.zeros_like(angle)
    return _from(images, [[angle.cos(), -angle.sin(), zero], [angle.sin(), angle.cos(), zero]])


def scale(images: Tensor, generator: torch.Generator) -> Tensor:
    """Smaller, the rest of the picture black."""
    zero, wide = torch.zeros(len(images)), torch.full((len(images),), 1 / SMALLER)
    return _from(images, [[wide, zero, zero], [zero, wide, zero]])


def translate(images: Tensor, generator: torch.Generator) -> Tensor:
    """Moved to the right or left, and up or down."""
    right, down = (SHIFT * unit(images) * _side(len(images), generator) for _ in range(2))
    zero, one = torch.zeros_like(right), torch.ones_like(right)
    return _from(images, [[one, zero, right], [zero, one, down]])


def _side(count: int, generator: torch.Generator) -> Tensor:
    """-1 or 1 for each image."""
    return 2.0 * torch.randint(0, 2, (count,), generator=generator) - 1


def _from(images: Tensor, back: list[list[Tensor]]) -> Tensor:
    """Each image as it comes from the two rows of numbers, one of them for each image."""
    rows = torch.stack([torch.stack(row, dim=1) for row in back], dim=1)  # B 2 3
    return resampled(images, rows.to(images.device))
