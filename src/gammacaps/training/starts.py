"""Where training's attack starts: anywhere in the ball, or also at corners that are alike over stripes and blocks.

A network may learn to hide the way uphill from starts that are noise, pixel by pixel, and then still fall to attacks
that need no gradient and change whole stripes and squares at once, as Square does (Andriushchenko et al., 2020).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.runs.train_config import TrainConfig

STRIPES, BLOCKS = 0.25, 0.25  # of the images; the others start anywhere
LARGEST = 0.5  # of the image's shorter side: the widest stripe and block


def draw_noise(config: TrainConfig, images: Tensor, step: int, size: int) -> Tensor:
    """Where in its ball, from 0 to 1, the attack on each pixel starts: for all of a batch of `size` images.

    Every process draws it for the whole batch, so that an image's start does not depend on who has the image.
    """
    if not config.robust:
        return images.new_empty(size, 0)
    generator = torch.Generator(images.device).manual_seed(config.seed * 1_000_003 + step)
    shape = (size, *images.shape[1:])
    noise = torch.rand(shape, generator=generator, device=images.device, dtype=images.dtype)
    return noise if config.attack_start == "uniform" else with_corners(noise, generator)


def with_corners(noise: Float[Tensor, "B C H W"], generator: torch.Generator) -> Float[Tensor, "B C H W"]:
    """The same, but a quarter of the images, drawn one by one, start at stripes and a quarter at blocks of 0 and 1.

    Their width, where the first one begins and the value of each are drawn for each image, the value for each channel.
    """
    count, channels, height, width = noise.shape
    drawn = torch.rand(4, count, generator=generator, device=noise.device)  # kind, width, down, right
    most = max(1, int(LARGEST * min(height, width)))
    side = 1 + (drawn[1] * most).long().clamp_max(most - 1)  # B
    rows, columns = (
        (torch.arange(length, device=noise.device) + (start * side).long()[:, None]) // side[:, None]  # B H, B W
        for length, start in ((height, drawn[2]), (width, drawn[3]))
    )
    stripes = drawn[0] < STRIPES  # B
    rows = torch.where(stripes[:, None], 0, rows)
    values = torch.rand(noise.shape, generator=generator, device=noise.device) < 0.5  # more than any image needs
    own, channel = (torch.arange(n, device=noise.device) for n in (count, channels))
    corners = values[own[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None]]
    return torch.where((drawn[0] < STRIPES + BLOCKS).view(-1, 1, 1, 1), corners.to(noise.dtype), noise)
