"""What lies over a picture or changes its light: brightness, stripes turned round, fog, mud."""

import torch
from torch import Tensor

from gammacaps.corruptions.smoothing import smooth, unit

BRIGHTER = 0.5
THICK, WIBBLE, DECAY = 3.0, 100.0, 1.4  # of the fog: its height over the image, its first unevenness, how that falls
MAP = 256  # side of the fog's map, of which a corner is taken
LIQUID, SPREAD, FINE = 0.65, 0.3, 1.0  # of the mud's drops: mean and deviation, and the deviation of their blur
EDGE, SOFT, COVERED = 0.65, 1.5, 0.8  # what counts as a drop, the blur of its edge, what of that is kept
MUD = 63 / 255
BROWN = (63 / 255, 42 / 255, 20 / 255)  # of colour images


def brightness(images: Tensor, generator: torch.Generator) -> Tensor:
    """The value of each pixel's colour (its largest channel) is raised; hue and saturation stay."""
    value = images.amax(dim=1, keepdim=True)
    raised = (value + BRIGHTER).clamp_max(1)
    return torch.where(value > 0, images * raised / value.clamp_min(1e-12), raised)


def stripe(images: Tensor, generator: torch.Generator) -> Tensor:
    """The left and the right quarter as a negative."""
    width = images.shape[3]
    column = torch.arange(width, device=images.device)
    return torch.where((column < width // 4) | (column >= width - width // 4), 1 - images, images)


def fog(images: Tensor, generator: torch.Generator) -> Tensor:
    """Uneven white over all of the image, the sum scaled back to where the image ended."""
    side = max(MAP, 1 << (max(images.shape[2:]) - 1).bit_length())
    # A map for a few images at a time: a map is larger than an image.
    maps = [plasma(len(part), side, generator)[:, : images.shape[2], : images.shape[3]] for part in images.split(64)]
    cloud = torch.cat(maps).unsqueeze(1).to(images)  # B 1 H W
    most = images.amax(dim=(1, 2, 3), keepdim=True)
    return (images + THICK * cloud) * most / (most + THICK)


def spatter(images: Tensor, generator: torch.Generator) -> Tensor:
    """Drops of mud: where smoothed noise is high, made soft at their edges."""
    drawn = torch.randn(len(images), 1, *images.shape[2:], generator=generator)
    drops = smooth(LIQUID + SPREAD * drawn, FINE * unit(images)) > EDGE
    cover = smooth(drops.float(), SOFT * unit(images)).to(images)
    cover = torch.where(cover < COVERED, 0.0, cover)
    colour = torch.tensor(BROWN if images.shape[1] == 3 else (MUD,)).to(images).view(1, -1, 1, 1)
    return images * (1 - cover) + colour * cover


def plasma(count: int, side: int, generator: torch.Generator) -> Tensor:
    """Maps (count, side, side) from 0 to 1 by midpoint displacement on a torus: each new point is the mean of four
    neighbours and a random number, whose size falls from one scale to the next finer one."""
    height = torch.zeros(count, side, side)
    step, wibble = side, WIBBLE

    def middle(four: Tensor) -> Tensor:
        size = wibble * wibble
        return four / 4 + size * (2 * torch.rand(four.shape, generator=generator) - 1)

    while step >= 2:
        half = step // 2
        corners = height[:, ::step, ::step]
        down = corners + corners.roll(-1, 1)
        centres = middle(down + down.roll(-1, 2))
        height[:, half::step, half::step] = centres
        # The sides' middles lie between two corners one way and two centres the other.
        above = corners + corners.roll(-1, 2) + centres + centres.roll(1, 1)
        beside = corners + corners.roll(-1, 1) + centres + centres.roll(1, 2)
        height[:, ::step, half::step] = middle(above)
        height[:, half::step, ::step] = middle(beside)
        step, wibble = half, wibble / DECAY
    lowest, highest = height.amin(dim=(1, 2), keepdim=True), height.amax(dim=(1, 2), keepdim=True)
    return (height - lowest) / (highest - lowest)
