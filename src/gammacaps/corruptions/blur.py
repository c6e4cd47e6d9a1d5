"""Blur: through frosted glass, and by a camera that moves."""

import torch
from torch import Tensor

from gammacaps.corruptions.smoothing import smooth, unit

GLASS = 0.7  # deviation of the blur before and after pixels are swapped
ROUNDS = 2  # of swapping
RADIUS, DEVIATION, ANGLE = 10, 3.0, 45.0  # of the motion: its longest way, how soon it fades, degrees to either side


def glass_blur(images: Tensor, generator: torch.Generator) -> Tensor:
    """Blurred, then half of the pixels swapped with one beside or above them (or with themselves), then blurred."""
    sigma, reach = GLASS * unit(images), max(1, round(unit(images)))
    (height, width), count = images.shape[2:], len(images)
    source = torch.arange(height * width).repeat(count, 1)  # where each pixel is taken from
    each = torch.arange(count)
    if min(height, width) <= 2 * reach:
        return smooth(smooth(images, sigma), sigma)
    for _ in range(ROUNDS):
        for row in range(height - reach, reach, -1):
            swapped = torch.rand(width, count, generator=generator) < 0.5
            right, down = torch.randint(-reach, reach, (2, width, count), generator=generator)
            for column in range(width - reach, reach, -1):
                here = torch.full_like(each, row * width + column)
                there = here + torch.where(swapped[column - 1], down[column - 1] * width + right[column - 1], 0)
                source[each, here], source[each, there] = source[each, there], source[each, here]
    flat = smooth(images, sigma).flatten(2)  # B C H*W
    index = source.to(images.device).unsqueeze(1).expand_as(flat)
    return smooth(flat.gather(2, index).view(images.shape), sigma)


def motion_blur(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each pixel the mean of those along a line from it, by weights that fall as one half of a bell; edges continued.

    The line's angle is drawn for each image.
    """
    steps = torch.arange(2 * round(RADIUS * unit(images)) + 1, dtype=torch.float64)
    weights = (-0.5 * (steps / (DEVIATION * unit(images))) ** 2).exp()
    weights = weights / weights.sum()
    angle = torch.deg2rad(ANGLE * (2 * torch.rand(len(images), generator=generator, dtype=torch.float64) - 1))
    of, channel = torch.arange(len(images))[:, None, None, None], torch.arange(images.shape[1])[:, None, None]
    total = torch.zeros_like(images)
    for step, weight in zip(steps, weights.tolist(), strict=True):
        rows, columns = (
            (torch.arange(side) + (step * way).round().long()[:, None]).clamp(0, side - 1)  # B side
            for side, way in zip(images.shape[2:], (angle.sin(), angle.cos()), strict=True)
        )
        index = (of, channel, rows[:, None, :, None], columns[:, None, None, :])
        total += weight * images[tuple(part.to(images.device) for part in index)]
    return total
