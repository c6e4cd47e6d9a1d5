"""Images moved, mirrored, turned, scaled and lit otherwise at random: a network does not learn them by heart."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from gammacaps.runs.train_config import TrainConfig


def augmented(
    images: Float[Tensor, "b C H W"], config: TrainConfig, step: int, size: int, own: slice
) -> Float[Tensor, "b C H W"]:
    """The images of a step, each changed at random within the bounds of the options.

    The images are those that this process has `own` of a batch of `size`; what is drawn is drawn for the whole batch,
    so that it does not depend on who has an image. Shifts and mirroring alone move whole pixels; with turns or scalings
    all of it is one resampling.
    """
    resampled, lit = bool(config.turn or config.zoom), bool(config.brightness or config.contrast)
    if not (config.shift or config.flip or resampled or lit):
        return images
    change = draw_change(config, step, size, own)
    if resampled:
        images = _resampled(images, change)
    elif config.shift or config.flip:
        images = _moved(images, change)
    return _lit(images, change) if lit else images


@dataclass(frozen=True, eq=False)
class Change:
    """What becomes of each of b images: turned and scaled about its centre, shifted, mirrored, and lit otherwise."""

    down: Tensor  # b, pixels
    right: Tensor  # b
    mirrored: Tensor  # b, left to right
    angle: Tensor  # b
    scale: Tensor  # b
    brightness: Tensor  # b, is added
    contrast: Tensor  # b, multiplies the difference from the image's mean


def draw_change(config: TrainConfig, step: int, size: int, own: slice) -> Change:
    """The changes of the images that this process has `own` of a step's batch of `size`, on the CPU."""
    generator = torch.Generator().manual_seed(config.seed * 1_000_003 + 700_001 + step)
    down, right = torch.randint(-config.shift, config.shift + 1, (2, size), generator=generator)
    mirrored = torch.rand(size, generator=generator) < (0.5 if config.flip else 0)
    turn, zoom, brightness, contrast = 2 * torch.rand(4, size, generator=generator, dtype=torch.float64) - 1
    angle, scale = torch.deg2rad(config.turn * turn), 1 + config.zoom * zoom
    drawn = (down, right, mirrored, angle, scale, config.brightness * brightness, 1 + config.contrast * contrast)
    return Change(*(values[own] for values in drawn))


def _moved(images: Tensor, change: Change) -> Tensor:
    """The images moved by whole pixels, their edges continued, and mirrored."""
    rows, columns = (_places(n, by) for n, by in zip(images.shape[2:], (change.down, change.right), strict=True))
    columns = torch.where(change.mirrored[:, None], columns.flip(1), columns)
    of, channel = torch.arange(len(images)), torch.arange(images.shape[1])
    index = (of[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :])
    return images[tuple(part.to(images.device, non_blocking=True) for part in index)]


def _places(count: int, by: Tensor) -> Tensor:
    """Where along an axis of `count` pixels each image (b) takes each of its pixels from."""
    return (torch.arange(count) - by[:, None]).clamp(0, count - 1)


def _resampled(images: Tensor, change: Change) -> Tensor:
    """The images moved, mirrored, turned and scaled at once: each pixel from the four nearest, the edges continued."""
    way = _way_back(change, *images.shape[2:]).to(images.dtype).to(images.device, non_blocking=True)
    grid = affine_grid(way, list(images.shape), align_corners=False)
    moved = grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return moved.clamp(0, 1)  # four weights add up to 1 only but for rounding


def _way_back(change: Change, height: int, width: int) -> Float[Tensor, "b 2 3"]:
    """From each place of the result to where it lies in the image, both from -1 to 1 across, as `affine_grid` has it.

    In pixels from the centre, (x, y) comes from R(-angle) / scale (+-x - right, y - down), - where it is mirrored.
    """
    cos, sin = change.angle.cos() / change.scale, change.angle.sin() / change.scale
    side = torch.where(change.mirrored, -1.0, 1.0)
    right, down = change.right, change.down
    to_x = [cos * side, sin * height / width, -(cos * right + sin * down) * 2 / width]
    to_y = [-sin * side * width / height, cos, (sin * right - cos * down) * 2 / height]
    return torch.stack([torch.stack(to_x, dim=1), torch.stack(to_y, dim=1)], dim=1)


def _lit(images: Tensor, change: Change) -> Tensor:
    """The images brighter or darker, with more or less contrast, as far as pixels go."""
    numbers = torch.stack([change.brightness, change.contrast]).to(images.dtype)  # 2 b
    brightness, contrast = numbers.to(images.device, non_blocking=True)[..., None, None, None]
    mean = images.mean(dim=(1, 2, 3), keepdim=True)
    return (mean + contrast * (images - mean) + brightness).clamp(0, 1)
