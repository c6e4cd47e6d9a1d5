"""Steps toward a capsule that end at a picture which people can read: what they build must hold while disturbed.

The gradient's sign at one image finds whatever makes a capsule long just there, often a few scattered dots. Here each
step looks at the image under new noise and moved by a pixel, smooths the gradient over neighbouring pixels, and goes
along a running mean of such gradients, so that only what helps again and again is built up. Brightness has a price that
grows over the steps: first the capsule is found, then what it does not need fades.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

NOISE = 0.1  # its deviation, where no radius of training is known
OF_RADIUS = 2 / 3  # of the radius that a network was trained at: with less dots come back, with more nothing is found
SHIFT = 1  # pixels
SMOOTHED = 2  # times over 3 x 3 pixels
KEPT = 0.8  # of the running mean, at each step
PRICE = 0.2  # of a pixel's brightness at the last step, in units of the gradient's root mean square


def noise_for(radius: float | None) -> float:
    """The noise under which pictures of a network that was trained at this radius should hold."""
    return OF_RADIUS * radius if radius else NOISE


def steadily(
    gradient_of: Callable[[Tensor], Tensor],
    images: Float[Tensor, "B C H W"],
    starts: Int[Tensor, "B"],
    sizes: Sequence[float],
    noise: float,
    seed: int,
) -> Float[Tensor, "B C H W"]:
    """Images after steps of these sizes; `gradient_of` gives the loss's gradient at images.

    What disturbs an image depends on the seed and on which start it is, so that its neighbours change nothing.
    """
    most, shape = int(starts.max()) + 1, images.shape[1:]
    mean = torch.zeros_like(images)
    for k, size in enumerate(sizes):
        down, right = np.random.default_rng((seed, k)).integers(-SHIFT, SHIFT + 1, 2).tolist()
        drawn = [np.random.default_rng((seed, k, start)).standard_normal(shape, np.float32) for start in range(most)]
        disturbed = images + noise * torch.from_numpy(np.stack(drawn)).to(images)[starts]
        gradient = gradient_of(disturbed.roll((down, right), (2, 3))).roll((-down, -right), (2, 3))
        mean = KEPT * mean + (1 - KEPT) * _of_one_size(smoothed(gradient.nan_to_num()))
        price = PRICE * k / max(1, len(sizes) - 1)
        images = (images - size * (mean + price)).clamp(0, 1)
    return images


def smoothed(images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """Each pixel's weighted mean with its neighbours (1 2 1 each way), several times, edges continued."""
    weights = images.new_tensor([0.25, 0.5, 0.25])
    channels = images.shape[1]
    kernel = (weights[:, None] * weights).expand(channels, 1, 3, 3)
    for _ in range(SMOOTHED):
        images = F.conv2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), kernel, groups=channels)
    return images


def _of_one_size(gradient: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """Divided by the root mean square of each image's; where there is none, none."""
    size = gradient.square().mean((1, 2, 3), keepdim=True).sqrt()
    return torch.where(size > 0, gradient / size.clamp_min(torch.finfo(gradient.dtype).tiny), 0)
