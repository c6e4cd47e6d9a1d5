"""Raw pixels to the tensors that networks take."""

import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor

from gammacaps.data.resize import area_resize

CHUNK = 2**24  # pixels resized at once: 64 MB as float32, however large the set


def to_unit(
    pixels: UInt8[np.ndarray, "N C H W"] | Float32[np.ndarray, "N C H W"], size: tuple[int, int] | None
) -> Float32[Tensor, "N C h w"]:
    """Bytes scaled by 1/255 (floats as they are), averaged over areas to `size` unless that is None."""
    source = torch.from_numpy(pixels)
    if size is None or size == pixels.shape[2:]:
        return _scaled(source)
    count, channels, height, width = pixels.shape
    images = torch.empty(count, channels, *size)
    step = max(1, CHUNK // (channels * height * width))
    for start in range(0, count, step):
        images[start : start + step] = area_resize(_scaled(source[start : start + step]), size)
    # The weights of a mean sum to 1 only up to rounding, so white can come out as 1.0000001.
    return images.clamp_(0, 1)


def _scaled(pixels: Tensor) -> Tensor:
    return pixels.float().div_(255) if pixels.dtype == torch.uint8 else pixels
