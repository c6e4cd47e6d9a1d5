"""A first convolution that starts where the data are: it then sees a pale image as it would one of full contrast."""

import torch
from torch import Tensor, nn

from gammacaps.data import DataSet
from gammacaps.data.dataset import StoredSet

IMAGES = 2000  # as many are looked at, from all over the set


def standardize_first(model: nn.Module, data: DataSet | StoredSet) -> None:
    """Changes the initial weights of the first convolution to what they are for images of mean 0 and deviation 1.

    They take in the data's mean and deviation, so that the network's input stays the image itself, with pixels in
    [0, 1], in which an attack's eps is told. Exact where no zeros are padded around the image.
    """
    mean, deviation = spread(data)
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    with torch.no_grad():
        first.weight /= deviation
        if first.bias is not None:
            first.bias -= mean * first.weight.sum(dim=(1, 2, 3))


def spread(data: DataSet | StoredSet) -> tuple[float, float]:
    """Mean and standard deviation of the pixels."""
    count = len(data.labels)
    index: Tensor = torch.linspace(0, count - 1, min(count, IMAGES)).round().long()
    pixels = data.images[index].double()
    return pixels.mean().item(), max(pixels.std(correction=0).item(), 1e-3)
