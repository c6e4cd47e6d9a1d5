"""A model that wants normalised images, as one that takes images in [0, 1], as attacks need them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.errors import InputError


class Normalized(nn.Module):
    """A model of (images - mean) / std, so that images in [0, 1] can be given, and radii count in pixels.

    Args:
        model: gives scores (B, N) for normalised images (B, C, H, W).
        mean: the mean of the training images: one number, or one for each channel.
        std: their standard deviation, likewise.

    >>> import torch, gammacaps
    >>> mine = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(28 * 28, 10))
    >>> gammacaps.Normalized(mine, mean=0.286, std=0.353)(torch.rand(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: nn.Module, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise InputError(f"Normalized takes a torch.nn.Module, not a {type(model).__name__}.")
        self.model = model
        for name, value in (("mean", mean), ("std", std)):
            self.register_buffer(name, _by_channel(name, value))
        if not (self.std > 0).all():
            raise InputError(f"std must be above 0, not {std!r:.60}.")
        if len(self.mean) != len(self.std) and 1 not in (len(self.mean), len(self.std)):
            raise InputError(f"mean is of {len(self.mean)} channels and std of {len(self.std)}: give each as many.")
        weight = next(model.parameters(), None)
        if weight is not None:
            self.to(weight.device)
        self.train(model.training)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N"]:
        scores: Tensor = self.model((images - self.mean.to(images)) / self.std.to(images))
        return scores


def _by_channel(name: str, value: object) -> Tensor:
    """As a tensor (C, 1, 1), which stands against images (B, C, H, W)."""
    try:
        numbers = torch.as_tensor(value, dtype=torch.float32).detach().flatten()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} is one number, or one for each channel, not {value!r:.60}.") from None
    if len(numbers) == 0 or not numbers.isfinite().all():
        raise InputError(f"{name} is one finite number, or one for each channel, not {value!r:.60}.")
    return numbers.view(-1, 1, 1)
