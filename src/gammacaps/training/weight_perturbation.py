"""Adversarial weight perturbation (Wu, Xia and Wang, 2020): weights learn at the worst point near them.

Attacked images make a network robust to changes of its input; weights moved uphill before the gradient is taken
make its loss flat around them, so that what was learned of the training images holds for others.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gammacaps.training.learner import matrices

SMALL = 1e-12  # added to a gradient's norm, which may be 0


@contextlib.contextmanager
def perturbed_weights(model: nn.Module, share: float) -> Iterator[None]:
    """Inside the block each weight has gone uphill by this share of its norm, along its gradient as it stands now.

    Then they are the very same as before. Biases, and weights without a gradient, stay where they are. Nothing waits
    for the device.
    """
    moved = [weight for weight in matrices(model) if weight.grad is not None]
    before = [weight.detach().clone() for weight in moved]
    with torch.no_grad():
        for weight, way in zip(moved, _uphill(moved), strict=True):
            weight.add_(way, alpha=share)
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, was in zip(moved, before, strict=True):
                weight.copy_(was)


def _uphill(weights: list[nn.Parameter]) -> list[Tensor]:
    """The gradient of each weight, as long as the weight itself."""
    ways = []
    for weight in weights:
        assert weight.grad is not None
        ways.append(weight.grad * (weight.norm() / (weight.grad.norm() + SMALL)))
    return ways
