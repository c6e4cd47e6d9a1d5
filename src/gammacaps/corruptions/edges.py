"""Canny's edges (1986): white where the brightness changes most, all else black."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, max_pool2d, pad

from gammacaps.corruptions.smoothing import smooth

SIGMA = 1.0  # pixels
LOW, HIGH = 0.1, 0.2  # of the gradient by Sobel's filter: where an edge may go on, and where one begins


def canny_edges(images: Tensor, generator: torch.Generator) -> Tensor:
    """The edges of the mean over the channels, the same in each channel."""
    smoothed = smooth(images.mean(dim=1, keepdim=True), SIGMA)
    sobel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]).to(images)
    filters = torch.stack([sobel, sobel.T]).unsqueeze(1)  # to the right, down
    slope = conv2d(pad(smoothed, (1, 1, 1, 1), mode="replicate"), filters)  # B 2 H W
    steep = slope.norm(dim=1, keepdim=True)
    ridge = _is_ridge(steep, slope)
    ridge[:, :, [0, -1]], ridge[:, :, :, [0, -1]] = False, False  # the border of the picture is no edge
    weak, edge = ridge & (steep >= LOW), ridge & (steep >= HIGH)
    while True:  # a weak edge counts where it touches one that counts
        grown = weak & (max_pool2d(edge.to(images), 3, stride=1, padding=1) > 0)
        if torch.equal(grown, edge):
            return edge.to(images).expand_as(images)
        edge = grown


def _is_ridge(steep: Tensor, slope: Tensor) -> Tensor:
    """Where the steepness is no less than one pixel further along the gradient, either way."""
    height, width = steep.shape[2:]
    way = slope / slope.abs().amax(dim=1, keepdim=True).clamp_min(1e-12)  # to the ring of eight neighbours
    x, y = torch.arange(width).to(steep), torch.arange(height).to(steep)[:, None]
    stands = steep > 0
    for sign in (-1, 1):
        across, down = (2 * (x + sign * way[:, 0]) + 1) / width - 1, (2 * (y + sign * way[:, 1]) + 1) / height - 1
        grid = torch.stack([across, down], dim=-1)  # B H W 2
        beside = grid_sample(steep, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        # Equal neighbours are told apart by rounding alone: of a plateau of two both stand.
        stands &= steep >= beside - 1e-5
    return stands
