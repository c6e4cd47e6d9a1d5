"""Lines drawn across a picture: dotted, and zigzag. All places are in MNIST-C's 28 x 28 pixels."""

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.corruptions.smoothing import SIDE

FAR = 2.3  # from a line, up or down, there is nothing of it
DASH = 2  # columns on, and as many off
AMPLITUDE = 2.0  # of the zigzag, and a quarter of its wave's length
LEFT, RIGHT = 2.0, 25.0  # the zigzag's ends
STEEP = 5  # rows that it may rise or fall


def dotted_line(images: Tensor, generator: torch.Generator) -> Tensor:
    """From the left edge to the right one, at heights that are drawn, two columns off and two on."""
    start, end = torch.randint(0, SIDE - 1, (2, len(images)), generator=generator).float()
    line = stroke(images, torch.zeros_like(start), start, torch.full_like(end, SIDE - 1), end)
    columns, _ = _places(images)
    return images + torch.where(columns.floor() % (2 * DASH) >= DASH, line, 0.0).unsqueeze(1).to(images)


def zigzag(images: Tensor, generator: torch.Generator) -> Tensor:
    """From near the left edge to near the right one, up and down about a line that rises or falls a little."""
    start = torch.randint(0, SIDE - 1, (len(images),), generator=generator).float()
    rise = torch.randint(-STEEP, STEEP, (len(images),), generator=generator).float()
    angle = (rise / (RIGHT - LEFT)).atan()
    long = (RIGHT - LEFT) / angle.cos()  # of the line
    # The corners along the line and across it: out, over to the other side, ..., and part of the way back at the end.
    along = [torch.zeros_like(long)]
    across = [torch.zeros_like(long)]
    corners = int((RIGHT - LEFT - AMPLITUDE) // (2 * AMPLITUDE)) + 1
    for k in range(corners):
        along.append(torch.full_like(long, (2 * k + 1) * AMPLITUDE))
        across.append(torch.full_like(long, AMPLITUDE * (-1) ** k))
    rest = long % (2 * AMPLITUDE)
    along.append(long)
    across.append(across[-1] / (2 * rest.clamp_min(1e-6)))
    x = [LEFT + a * angle.cos() - b * angle.sin() for a, b in zip(along, across, strict=True)]
    y = [start + a * angle.sin() + b * angle.cos() for a, b in zip(along, across, strict=True)]
    for k in range(1, len(x)):
        line = stroke(images, x[k - 1], y[k - 1], x[k], y[k])
        images = (images + line.unsqueeze(1).to(images)).clamp_max(1)
    return images


def stroke(images: Tensor, left: Tensor, top: Tensor, right: Tensor, bottom: Tensor) -> Float[Tensor, "B H W"]:
    """A line from (left, top) to (right, bottom), for each image, white in its middle and fading up and down."""
    columns, rows = _places(images)
    start, end = left[:, None, None], right[:, None, None]
    slope = (bottom - top)[:, None, None] / (end - start)
    away = (rows - (slope * (columns - start) + top[:, None, None])).abs()
    white = ((1 - away / FAR).clamp_min(1e-10).log() + 1).clamp(0, 1)
    return torch.where((columns >= start.floor()) & (columns < end.ceil()), white, 0.0)


def _places(images: Tensor) -> tuple[Tensor, Tensor]:
    """The column (1, W) and the row (H, 1) of each pixel, were the image MNIST-C's."""
    height, width = images.shape[2:]
    return torch.arange(width)[None, :] * SIDE / width, torch.arange(height)[:, None] * SIDE / height
