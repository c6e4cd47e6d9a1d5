"""Images moved and mirrored at random, so that a network does not learn them by heart."""

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.runs.train_config import TrainConfig


def augmented(
    images: Float[Tensor, "b C H W"], config: TrainConfig, step: int, size: int, own: slice
) -> Float[Tensor, "b C H W"]:
    """The images of a step, each moved by up to `shift` pixels with its edges continued, and half of them mirrored.

    The images are those that this process has `own` of a batch of `size`; what is drawn is drawn for the whole batch,
    so that it does not depend on who has an image.
    """
    if not config.shift and not config.flip:
        return images
    generator = torch.Generator().manual_seed(config.seed * 1_000_003 + 700_001 + step)
    down, right = torch.randint(-config.shift, config.shift + 1, (2, size), generator=generator)
    mirrored = torch.rand(size, generator=generator) < (0.5 if config.flip else 0)
    rows, columns = (_places(n, by[own]) for n, by in zip(images.shape[2:], (down, right), strict=True))
    columns = torch.where(mirrored[own, None], columns.flip(1), columns)
    of, channel = torch.arange(len(images)), torch.arange(images.shape[1])
    index = (of[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :])
    return images[tuple(part.to(images.device, non_blocking=True) for part in index)]


def _places(count: int, by: Tensor) -> Tensor:
    """Where along an axis of `count` pixels each image (b) takes each of its pixels from."""
    return (torch.arange(count) - by[:, None]).clamp(0, count - 1)
