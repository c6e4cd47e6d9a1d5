"""Images of another size by averaging areas."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from gammacaps.errors import InputError

LONGEST_SIDE = 2**16  # the matrix that resizes a side has a column for each of its pixels


def area_resize(images: Float[Tensor, "N C H W"], size: tuple[int, int]) -> Float[Tensor, "N C h w"]:
    """Each output pixel is the mean of the input over the area it covers, for any ratio of sizes.

    A pixel that is covered in part counts by its covered fraction, so the mean of an image is kept. (Adaptive
    pooling counts such pixels whole.) An output pixel of an enlarged image lies in one input pixel or across
    a border.
    """
    if min(size) < 1:
        raise InputError(f"Images can't be resized to {size}: height and width must be 1 or more.")
    if max(images.shape[-2:]) > LONGEST_SIDE:
        raise InputError(f"Images of {images.shape[-2]} x {images.shape[-1]} pixels can't be resized: cut them first.")
    if images.shape[-2:] == size:
        return images
    rows = overlaps(images.shape[-2], size[0]).to(images)  # [h H]
    columns = overlaps(images.shape[-1], size[1]).to(images)  # [w W]
    return ((images @ columns.T).mT @ rows.T).mT  # [N C h w]


def overlaps(old: int, new: int) -> Float64[Tensor, "new old"]:
    """Fraction of each of `new` pixels that each of `old` pixels covers on the same line; rows sum to 1.

    Lengths are counted in units of 1 / (old * new) of the line, so that all borders are whole numbers.
    """
    new_start = torch.arange(new)[:, None] * old  # [new 1]
    old_start = torch.arange(old) * new  # [old]
    ends = torch.minimum(new_start + old, old_start + new)
    starts = torch.maximum(new_start, old_start)
    return (ends - starts).clamp(min=0).double() / old
