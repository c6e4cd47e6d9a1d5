"""The allowed perturbations: an L-inf, L2 or L1 ball around each image, cut by the box [0, 1] of images."""

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


class L1Ball:
    """All images whose difference adds up to at most eps: a few pixels may change a lot."""

    def __init__(self, images: Float[Tensor, "B C H W"], eps: float) -> None:
        self.images, self.eps = images, eps

    def start(self, generator: torch.Generator | None) -> Tensor:
        """Uniform in the ball (not in its part inside the box): Laplace's direction, the radius as in any ball."""
        images = self.images
        share, radius = (
            torch.rand(shape, generator=generator, device=images.device, dtype=images.dtype)
            for shape in ((2, *images.shape), (len(images),))
        )
        direction = -share[0].clamp_min(1e-12).log() * torch.where(share[1] < 0.5, -1.0, 1.0).to(images)
        size = self.eps * radius ** (1 / images[0].numel())
        return self.project(images + direction * _wide(size / direction.abs().flatten(1).sum(1).clamp_min(1e-12)))

    def step(self, points: Tensor, gradient: Tensor, size: float) -> Tensor:
        """Moves the one in a hundred pixels with the steepest gradient (at least one), all by the same amount.

        As Tramer and Boneh (2019) do; pixels that are at the end of the box already are left out.
        """
        stuck = ((points <= 0) & (gradient < 0)) | ((points >= 1) & (gradient > 0))
        steep = gradient.abs().masked_fill(stuck, 0).flatten(1)
        count = max(1, round(SPARSE * steep.shape[1]))
        least = steep.topk(count, dim=1).values[:, -1:]
        moved = ((steep >= least) & (steep > 0)).view(points.shape)
        direction = gradient.sign() * moved
        return points + size * direction / _wide(direction.abs().flatten(1).sum(1).clamp_min(1))

    def project(self, points: Tensor) -> Tensor:
        """The nearest image in the ball and the box: each difference less the right t, as far as 0, then clipped."""
        offset = points - self.images
        inside = points.clamp(0, 1)
        fits = (inside - self.images).abs().flatten(1).sum(1) <= self.eps
        if fits.all():
            return inside
        size, sign = offset.abs(), offset.sign()
        low = torch.zeros_like(points[:, :1, :1, :1])
        high = size.flatten(1).amax(1).view(low.shape)
        for _ in range(40):
            middle = (low + high) / 2
            there = (self.images + sign * (size - middle).clamp_min(0)).clamp(0, 1)
            small = _wide((there - self.images).abs().flatten(1).sum(1) <= self.eps)
            low, high = torch.where(small, low, middle), torch.where(small, middle, high)
        shrunk = (self.images + sign * (size - high).clamp_min(0)).clamp(0, 1)
        return torch.where(_wide(fits), inside, shrunk)

    def of(self, which: Tensor) -> "L1Ball":
        return L1Ball(self.images[which], self.eps)


SPARSE = 0.01  # of the pixels move in a step of L1
BALLS: dict[str, type[Ball]] = {"linf": LinfBall, "l2": L2Ball, "l1": L1Ball}


def distances(offset: Float[Tensor, "B C H W"], norm: str) -> Float[Tensor, "B"]:
    """How long each difference of two images is in a norm."""
    order = {"linf": torch.inf, "l2": 2, "l1": 1}[norm]
    return torch.linalg.vector_norm(offset.flatten(1), order, dim=1)


def _norm(offset: Float[Tensor, "B C H W"]) -> Float[Tensor, "B"]:
    return offset.flatten(1).norm(dim=1)


def _wide(per_image: Tensor) -> Tensor:
    return per_image.view(-1, 1, 1, 1)


def _scaled(direction: Float[Tensor, "B C H W"], size: Float[Tensor, "B"]) -> Float[Tensor, "B C H W"]:
    """The direction with the length `size`; a zero direction stays zero."""
    return direction * _wide(size / _norm(direction).clamp_min(1e-12))
