"""Small classifiers of the embedded sample, for what is said of any torch classifier."""

import functools

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import gammacaps


def cnn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 10),
    )


@functools.cache
def trained(mean: float = 0.0, std: float = 1.0) -> nn.Module:
    """A CNN that learned from clean images, normalised by these numbers."""
    torch.manual_seed(0)
    images, labels = gammacaps.load_data("fashion-mini", "train")
    network = cnn()
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(150):
        batch = torch.randint(len(images), (64,))
        optimizer.zero_grad()
        cross_entropy(network((images[batch] - mean) / std), labels[batch]).backward()
        optimizer.step()
    return network.eval()


class Rounded(nn.Module):
    """The same network on rounded pixels, which mask its gradients: they are zero everywhere."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network((images * 16).round() / 16)
