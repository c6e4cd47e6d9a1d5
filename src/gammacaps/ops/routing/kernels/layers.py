"""The three sets of kernels as backends, each for a layer of one shape, and the choice among them."""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from gammacaps.ops.routing.backend import Gradients, Settings, Wanted
from gammacaps.ops.routing.kernels import few, many, whole

Inputs: TypeAlias = tuple[Tensor, Tensor, Tensor | None]  # poses, arranged weight, bias
Sizes: TypeAlias = tuple[int, ...]


def kernels_for(
    batch: int, shape: Sequence[int], settings: Settings, device: torch.device, *, learning: bool
) -> "Whole | Few | Many":
    """The kernels that route so many samples by a weight of this shape (I, J, d, D).

    `learning`: whether the weight or the bias will be asked for its gradient, which `whole` does not have.
    """
    I, J, d, D = shape
    if not learning and whole.fits(I, J, d, D):
        return Whole(settings)
    return Few(batch, shape, settings, device) if few.fits(J, d, D) else Many(batch, shape, settings)


class Whole:
    """A layer so small that each sample is one program, without a gradient of the weight."""

    arranged_shape: Sizes | None = None  # the kernels read the weights as they are
    kept_shapes: tuple[Sizes, ...] = ()

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def arrange(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        return weight

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, *, couplings: bool, keep: bool
    ) -> tuple[Tensor, Tensor | None, Sequence[Tensor]]:
        v, c = whole.forward(poses, weight, bias, self.settings.rule.name, self.settings.iterations, couplings)
        return v, c, ()

    def backward(
        self,
        inputs: Inputs,
        kept: Sequence[Tensor],
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        wanted: Wanted,
        *,
        once: bool = False,
    ) -> Gradients:
        assert not wanted.weight
        assert not wanted.bias
        rule = self.settings.rule.name
        return whole.backward(grad_v, grad_c, *inputs, rule, self.settings.iterations), None, None

    def weight_gradient(self, weight: Tensor) -> Tensor:
        raise AssertionError("it has none")


class Few:
    """A layer whose upper capsules fit in a tile."""

    def __init__(self, batch: int, shape: Sequence[int], settings: Settings, device: torch.device) -> None:
        self.settings = settings
        self.layer = layer = few.TiledLayer(batch, shape, settings.rule.name, device)
        I, _, d, _ = shape
        vectors, links, later = (layer.Bp, layer.Dh, layer.Jp, 4), (I, layer.Bp, layer.Jp), settings.iterations - 1
        self.arranged_shape: Sizes | None = (I, d, *vectors[1:])
        self.kept_shapes: tuple[Sizes, ...] = (
            (I, d, layer.Bp),
            (I, layer.Bp),
            (settings.iterations, *vectors),
            (later, *vectors),
            (later, *links),
            (later if layer.sda else 0, *links),
        )

    def arrange(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        return self.layer.arrange_weight(weight, out)

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, *, couplings: bool, keep: bool
    ) -> tuple[Tensor, Tensor | None, Sequence[Tensor]]:
        iterations = self.settings.iterations
        v, kept = self.layer.forward(poses.contiguous(), weight, bias, iterations, keep or couplings)
        return v, self.layer.plain_couplings(kept) if couplings else None, kept if keep else ()

    def backward(
        self,
        inputs: Inputs,
        kept: Sequence[Tensor],
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        wanted: Wanted,
        *,
        once: bool = False,
    ) -> Gradients:
        """`once`: nobody will ask again, so that memory of what was kept may be used for something else."""
        layer, kept = self.layer, few.Kept(*kept)
        slopes = kept.distances if once and layer.sda else None  # no longer needed once a slope is known
        grad_c = None if grad_c is None else grad_c.contiguous()
        grad_poses, grad_weight, at_sums = layer.backward(
            kept, inputs[1], grad_v, grad_c, wanted.poses, wanted.weight, slopes
        )
        grad_bias = layer.plain_vectors(at_sums[:, : layer.B].sum((0, 1))).contiguous() if wanted.bias else None
        return grad_poses, grad_weight, grad_bias

    def weight_gradient(self, weight: Tensor) -> Tensor:
        """Memory laid out as the gradient of a weight."""
        I, J, d, D = weight.shape
        return weight.new_empty(I, d, J, D, dtype=torch.float32).transpose(1, 2)


class Many:
    """A layer with any number of upper capsules."""

    arranged_shape: Sizes | None = None

    def __init__(self, batch: int, shape: Sequence[int], settings: Settings) -> None:
        self.settings = settings
        _, J, _, D = shape
        self.kept_shapes: tuple[Sizes, ...] = ((settings.iterations, batch, J, D),)

    def arrange(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        return weight

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, *, couplings: bool, keep: bool
    ) -> tuple[Tensor, Tensor | None, Sequence[Tensor]]:
        rule, iterations = self.settings.rule.name, self.settings.iterations
        v, c, sums = many.forward(poses, weight, bias, rule, iterations, couplings)
        return v, c, (sums,) if keep else ()

    def backward(
        self,
        inputs: Inputs,
        kept: Sequence[Tensor],
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        wanted: Wanted,
        *,
        once: bool = False,
    ) -> Gradients:
        (poses, weight, _), (sums,) = inputs, kept
        rule, iterations = self.settings.rule.name, self.settings.iterations
        grad_poses, grad_weight, grad_bias = many.backward(
            grad_v, grad_c, poses, weight, sums, rule, iterations, wanted.poses, wanted.weight
        )
        return grad_poses, grad_weight, grad_bias if wanted.bias else None

    def weight_gradient(self, weight: Tensor) -> Tensor:
        """Memory laid out as the gradient of a weight."""
        return torch.empty_like(weight, dtype=torch.float32)
