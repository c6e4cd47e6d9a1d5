"""The reconstruction network: from the class capsules back to the image."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Decoder(nn.Module):
    """Fully connected layers from the class capsules, all but one set to zero, to pixels in [0, 1]."""

    def __init__(self, classes: int, size: int, widths: Sequence[int], image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.image_shape = image_shape
        layers: list[nn.Module] = []
        before = classes * size
        for width in widths:
            layers += [nn.Linear(before, width), nn.ReLU()]
            before = width
        self.layers = nn.Sequential(*layers, nn.Linear(before, math.prod(image_shape)), nn.Sigmoid())

    def forward(self, poses: Float[Tensor, "B N D"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B C H W"]:
        """Reconstructs from the capsule of the class `labels` alone."""
        shown = torch.nn.functional.one_hot(labels, poses.shape[1]).to(poses.dtype)  # B N
        return self.layers((poses * shown.unsqueeze(-1)).flatten(1)).view(-1, *self.image_shape)
