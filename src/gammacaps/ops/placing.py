"""Images put elsewhere: turned, scaled, shifted or sheared about their centre, by one resampling."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

EDGES = {"black": "zeros", "continued": "border"}  # what lies outside of an image, in words and in torch's


def resampled(
    images: Float[Tensor, "B C H W"], back: Float[Tensor, "B 2 3"], edges: str = "black"
) -> Float[Tensor, "B C H W"]:
    """Each pixel of the result from the four nearest to where it comes from.

    `back` leads from a place (x, y) of the result, in pixels right of and below the centre, to the place in the image:
    back @ (x, y, 1). What lies outside of the image is black, or its edges continued.
    """
    height, width = images.shape[2:]
    # affine_grid counts from -1 to 1 across the image, whatever its sides.
    to_pixels = torch.tensor([width / 2, height / 2, 1.0], dtype=back.dtype, device=back.device)
    from_pixels = torch.tensor([[2 / width], [2 / height]], dtype=back.dtype, device=back.device)
    grid = affine_grid((back * to_pixels * from_pixels).to(images), list(images.shape), align_corners=False)
    moved = grid_sample(images, grid, mode="bilinear", padding_mode=EDGES[edges], align_corners=False)
    return moved.clamp(0, 1)  # four weights add up to 1 only but for rounding


def placed(
    images: Float[Tensor, "B C H W"],
    *,
    turn: float = 0.0,
    scale: float = 1.0,
    right: float = 0.0,
    down: float = 0.0,
    edges: str = "black",
) -> Float[Tensor, "B C H W"]:
    """The images turned clockwise by `turn` degrees and scaled about their centre, then shifted by so many pixels."""
    cos, sin = math.cos(math.radians(turn)) / scale, math.sin(math.radians(turn)) / scale
    back = [[cos, sin, -cos * right - sin * down], [-sin, cos, sin * right - cos * down]]
    whole = torch.tensor(back, dtype=torch.float64).expand(len(images), 2, 3)
    return resampled(images, whole.to(images.device, torch.float32), edges)
