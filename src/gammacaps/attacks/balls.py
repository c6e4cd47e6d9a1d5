"""The allowed perturbations: an L-inf or L2 ball around each image, cut by the box [0, 1] of images."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Ball(Protocol):
    """What an attack needs of a norm: a random point, a step uphill, and the way back in."""

    images: Tensor

    def __init__(self, images: Tensor, eps: float) -> None: ...
    def start(self, generator: torch.Generator | None) -> Tensor: ...
    def step(self, points: Tensor, gradient: Tensor, size: float) -> Tensor: ...
    def project(self, points: Tensor) -> Tensor: ...
    def of(self, which: Tensor) -> "Ball": ...


class LinfBall:
    """All images that differ by at most eps in each pixel."""

    def __init__(self, images: Float[Tensor, "B C H W"], eps: float) -> None:
        self.images, self.eps = images, eps
        low, high = (images - eps).clamp_min(0), (images + eps).clamp_max(1)
        # Rounding can put a bound one step of the number format outside: |bound - image| <= eps must hold as computed.
        self.low = torch.where(images - low > eps, low.nextafter(images), low)
        self.high = torch.where(high - images > eps, high.nextafter(images), high)

    def start(self, generator: torch.Generator | None) -> Tensor:
        share = torch.rand(self.images.shape, generator=generator, device=self.images.device, dtype=self.images.dtype)
        return self.project(self.images + (2 * share - 1) * self.eps)

    def step(self, points: Tensor, gradient: Tensor, size: float) -> Tensor:
        return points + size * gradient.sign()

    def project(self, points: Tensor) -> Tensor:
        return points.clamp(self.low, self.high)

    def of(self, which: Tensor) -> "LinfBall":
        return LinfBall(self.images[which], self.eps)


class L2Ball:
    """All images whose difference has a Euclidean length of at most eps."""

    def __init__(self, images: Float[Tensor, "B C H W"], eps: float) -> None:
        self.images, self.eps = images, eps

    def start(self, generator: torch.Generator | None) -> Tensor:
        """Uniform in the ball (not in its part inside the box)."""
        images = self.images
        direction = torch.randn(images.shape, generator=generator, device=images.device, dtype=images.dtype)
        share = torch.rand(len(images), generator=generator, device=images.device, dtype=images.dtype)
        radius = share ** (1 / images[0].numel())
        return self.project(self.images + _scaled(direction, self.eps * radius))

    def step(self, points: Tensor, gradient: Tensor, size: float) -> Tensor:
        return points + _scaled(gradient, torch.full((len(points),), size).to(points))

    def project(self, points: Tensor) -> Tensor:
        """The nearest image in the ball and the box: clip(image + s (point - image)) for the right s in [0, 1]."""
        offset = points - self.images
        inside = points.clamp(0, 1)
        if (_norm(inside - self.images) <= self.eps).all():
            return inside
        low, high = torch.zeros_like(points[:, :1, :1, :1]), torch.ones_like(points[:, :1, :1, :1])
        for _ in range(30):
            middle = (low + high) / 2
            fits = _norm((self.images + middle * offset).clamp(0, 1) - self.images) <= self.eps
            low, high = torch.where(_wide(fits), middle, low), torch.where(_wide(fits), high, middle)
        shrunk = (self.images + low * offset).clamp(0, 1)
        return torch.where(_wide(_norm(inside - self.images) <= self.eps), inside, shrunk)

    def of(self, which: Tensor) -> "L2Ball":
        return L2Ball(self.images[which], self.eps)


BALLS: dict[str, type[Ball]] = {"linf": LinfBall, "l2": L2Ball}


def _norm(offset: Float[Tensor, "B C H W"]) -> Float[Tensor, "B"]:
    return offset.flatten(1).norm(dim=1)


def _wide(per_image: Tensor) -> Tensor:
    return per_image.view(-1, 1, 1, 1)


def _scaled(direction: Float[Tensor, "B C H W"], size: Float[Tensor, "B"]) -> Float[Tensor, "B C H W"]:
    """The direction with the length `size`; a zero direction stays zero."""
    return direction * _wide(size / _norm(direction).clamp_min(1e-12))
