"""A gamma-capsule network with frozen weights, for those who want nothing but the gradient of the image, and often.

The kernels take weights in arrangements of their own, which are made once for many passes, and no weight gets a
gradient. Forward and backward are written out: no graph is built, so a pass can be captured in a CUDA graph.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.models.gamma_capsules import GammaCapsNet
from gammacaps.nn import Convolution, RoutedCapsules
from gammacaps.ops.kernels import convolution, few, many, whole
from gammacaps.ops.kernels.attack import squash_gradient


class FrozenNetwork:
    """`forward` and then `backward` of the same images; `refresh` after the model's weights have changed."""

    def __init__(self, model: GammaCapsNet, batch: int, dtype: torch.dtype) -> None:
        # Not the model itself, so that whoever keeps frozen networks by model does not keep the model alive.
        self.dtype, self.size, self.image_shape = dtype, model.primary.size, model.config.image_shape
        first, second = model.encoder[0], model.primary.convolution
        assert isinstance(first, Convolution)
        self.convolutions = (first, second)
        self.arranged = tuple(convolution.arrange(layer.weight.detach(), dtype) for layer in self.convolutions)
        self.layers = [frozen_layer(layer, batch) for layer in model.routed if isinstance(layer, RoutedCapsules)]

    def refresh(self) -> None:
        """Arranges the model's present weights, in the same memory."""
        for layer, arranged in zip(self.convolutions, self.arranged, strict=True):
            convolution.arrange(layer.weight.detach(), self.dtype, arranged)
        for routed in self.layers:
            routed.refresh()

    def forward(self, images: Float[Tensor, "B C H W"], until: int | None = None) -> Float[Tensor, "B N D"]:
        """The poses of layer `until` (0: the primary capsules), or of the class capsules; no layer after it is run."""
        first, second = self.convolutions
        assert first.bias is not None
        assert second.bias is not None
        pixels = images.permute(0, 2, 3, 1).contiguous()
        self.features = convolution.forward(
            pixels, self.arranged[0], first.bias.detach(), first.stride[0], True, self.dtype
        )
        self.entries, poses = convolution.forward_squash(
            self.features, self.arranged[1], second.bias.detach(), second.stride[0], self.size
        )
        v = poses.view(len(images), -1, self.size)
        self.passed = self.layers[:until]
        for layer in self.passed:
            v = layer.forward(v)
        return v

    def backward(self, grad: Float[Tensor, "B N D"]) -> Float[Tensor, "B C H W"]:
        """The image's gradient from the gradient at the poses that `forward` gave."""
        for layer in reversed(self.passed):
            grad = layer.backward(grad)
        first, second = self.convolutions
        grouped = self.entries.view(*grad.shape)
        at_entries = squash_gradient(grouped, grad, self.dtype).view(self.entries.shape)
        _, rows, columns, _ = self.features.shape
        at_features = convolution.input_gradient(
            at_entries, self.arranged[1], second.stride[0], (rows, columns), self.features
        )
        _, height, width = self.image_shape
        at_pixels = convolution.input_gradient(
            at_features, self.arranged[0], first.stride[0], (height, width), None, torch.float32
        )
        return at_pixels.permute(0, 3, 1, 2).contiguous()  # as the images lie, which the kernels that move them rely on


class WholeLayer:
    """A layer so small that each sample is one program."""

    def __init__(self, layer: RoutedCapsules) -> None:
        self.layer = layer

    def refresh(self) -> None:
        """Nothing is arranged: the kernels read the weights as they are."""

    def forward(self, poses: Tensor) -> Tensor:
        self.poses, layer = poses, self.layer
        return whole.forward(poses, layer.weight.detach(), layer.bias, layer.rule, layer.iterations, False)[0]

    def backward(self, grad: Tensor) -> Tensor:
        layer = self.layer
        return whole.backward(grad, None, self.poses, layer.weight.detach(), layer.bias, layer.rule, layer.iterations)


class FewLayer:
    """A layer whose upper capsules fit in a tile."""

    def __init__(self, layer: RoutedCapsules, batch: int) -> None:
        self.layer = layer
        self.kernels = few.Layer(batch, layer.weight.shape, layer.rule, layer.weight.device)
        self.arranged = self.kernels.arrange_weight(layer.weight.detach())

    def refresh(self) -> None:
        self.kernels.arrange_weight(self.layer.weight.detach(), self.arranged)

    def forward(self, poses: Tensor) -> Tensor:
        v, self.kept = self.kernels.forward(poses, self.arranged, self.layer.bias, self.layer.iterations, True)
        return v

    def backward(self, grad: Tensor) -> Tensor:
        kept = self.kept
        slopes = kept.distances if self.layer.rule == "sda" else None  # no longer needed once a slope is known
        found = self.kernels.backward(kept, grad, None, True, False, slopes)[0]
        assert found is not None
        return found


class ManyLayer:
    """A layer with any number of upper capsules."""

    def __init__(self, layer: RoutedCapsules) -> None:
        self.layer = layer

    def refresh(self) -> None:
        """Nothing is arranged."""

    def forward(self, poses: Tensor) -> Tensor:
        layer, self.poses = self.layer, poses
        v, _, self.sums = many.forward(poses, layer.weight.detach(), layer.bias, layer.rule, layer.iterations, False)
        return v

    def backward(self, grad: Tensor) -> Tensor:
        layer = self.layer
        found = many.backward(
            grad, None, self.poses, layer.weight.detach(), self.sums, layer.rule, layer.iterations, True, False
        )[0]
        assert found is not None
        return found


def frozen_layer(layer: RoutedCapsules, batch: int) -> WholeLayer | FewLayer | ManyLayer:
    """A routed layer with frozen weights."""
    I, J, d, D = layer.weight.shape
    if whole.fits(I, J, d, D):
        return WholeLayer(layer)
    return FewLayer(layer, batch) if few.fits(J, d, D) else ManyLayer(layer)
