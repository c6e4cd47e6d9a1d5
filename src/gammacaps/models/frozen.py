"""A gamma-capsule network with frozen weights, for those who want nothing but the gradient of the image, and often.

The kernels take weights in arrangements of their own, which are made once for many passes, and no weight gets a
gradient. Forward and backward are written out: no graph is built, so a pass can be captured in a CUDA graph.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.models.gamma_capsules import GammaCapsNet
from gammacaps.nn import Convolution, RoutedCapsules
from gammacaps.nn.frozen import frozen
from gammacaps.ops.convolution import kernels as convolution
from gammacaps.ops.kernels.capsules import squash_gradient
from gammacaps.ops.routing.backend import Wanted
from gammacaps.ops.routing.kernels.layers import kernels_for


class FrozenNetwork:
    """`forward` and then `backward` of the same images; `refresh` after the model's weights have changed."""

    def __init__(self, model: GammaCapsNet, batch: int, dtype: torch.dtype) -> None:
        # Not the model itself, so that whoever keeps frozen networks by model does not keep the model alive.
        self.front = (KernelFront if model.config.encoder == "convolution" else AutogradFront)(model, dtype)
        self.layers = [FrozenLayer(layer, batch) for layer in model.routed if isinstance(layer, RoutedCapsules)]

    def refresh(self) -> None:
        """Arranges the model's present weights, in the same memory."""
        self.front.refresh()
        for routed in self.layers:
            routed.refresh()

    def forward(self, images: Float[Tensor, "B C H W"], until: int | None = None) -> Float[Tensor, "B N D"]:
        """The poses of layer `until` (0: the primary capsules), or of the class capsules; no layer after it is run."""
        v = self.front.forward(images)
        self.passed = self.layers[:until]
        for layer in self.passed:
            v = layer.forward(v)
        return v

    def backward(self, grad: Float[Tensor, "B N D"]) -> Float[Tensor, "B C H W"]:
        """The image's gradient from the gradient at the poses that `forward` gave."""
        for layer in reversed(self.passed):
            grad = layer.backward(grad)
        return self.front.backward(grad)


class KernelFront:
    """From the image to the primary capsules by two convolutions with kernels of their own."""

    def __init__(self, model: GammaCapsNet, dtype: torch.dtype) -> None:
        self.dtype, self.size, self.image_shape = dtype, model.primary.size, model.config.image_shape
        first, second = model.encoder[0], model.primary.convolution
        assert isinstance(first, Convolution)
        self.convolutions = (first, second)
        self.arranged = tuple(convolution.arrange(layer.weight.detach(), dtype) for layer in self.convolutions)

    def refresh(self) -> None:
        for layer, arranged in zip(self.convolutions, self.arranged, strict=True):
            convolution.arrange(layer.weight.detach(), self.dtype, arranged)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B I d"]:
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
        return poses.view(len(images), -1, self.size)

    def backward(self, grad: Float[Tensor, "B I d"]) -> Float[Tensor, "B C H W"]:
        first, second = self.convolutions
        features, entries = self.features, self.entries
        del self.features, self.entries  # their memory is then free for other recordings
        at_entries = squash_gradient(entries.view(*grad.shape), grad, self.dtype).view(entries.shape)
        _, rows, columns, _ = features.shape
        at_features = convolution.input_gradient(
            at_entries, self.arranged[1], second.stride[0], (rows, columns), features
        )
        _, height, width = self.image_shape
        at_pixels = convolution.input_gradient(
            at_features, self.arranged[0], first.stride[0], (height, width), None, torch.float32
        )
        return at_pixels.permute(0, 3, 1, 2).contiguous()  # as the images lie, which the kernels that move them rely on


class AutogradFront:
    """The same by any encoder and autograd, its products in half precision where `dtype` is one."""

    def __init__(self, model: GammaCapsNet, dtype: torch.dtype) -> None:
        self.encoder, self.primary, self.dtype = model.encoder, model.primary, dtype

    def refresh(self) -> None:
        """The encoder's own weights are used."""

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B I d"]:
        self.leaf = images.detach().requires_grad_()
        half = self.dtype != torch.float32
        with (
            torch.enable_grad(),
            frozen(self.encoder),
            frozen(self.primary),
            torch.autocast(images.device.type, self.dtype, enabled=half, cache_enabled=False),
        ):
            self.poses = self.primary(self.encoder(self.leaf))
        return self.poses.detach()

    def backward(self, grad: Float[Tensor, "B I d"]) -> Float[Tensor, "B C H W"]:
        poses, leaf = self.poses, self.leaf
        del self.poses, self.leaf
        return torch.autograd.grad(poses, leaf, grad)[0]


class FrozenLayer:
    """A routed layer for batches of one size: the kernels that are for it, with weights arranged once."""

    def __init__(self, layer: RoutedCapsules, batch: int) -> None:
        self.layer, weight = layer, layer.weight.detach()
        self.kernels = kernels_for(batch, weight.shape, layer.settings(), weight.device, learning=False)
        self.arranged = self.kernels.arrange(weight)

    def refresh(self) -> None:
        """Arranges the layer's present weights, in the same memory."""
        self.arranged = self.kernels.arrange(self.layer.weight.detach(), self.arranged)

    def forward(self, poses: Float[Tensor, "B I d"]) -> Float[Tensor, "B J D"]:
        self.inputs = (poses, self.arranged, self.layer.bias)
        v, _, self.kept = self.kernels.forward(*self.inputs, couplings=False, keep=True)
        return v

    def backward(self, grad: Float[Tensor, "B J D"]) -> Float[Tensor, "B I d"]:
        """The gradient of the poses from the gradient at what `forward` gave, once for each `forward`."""
        wanted = Wanted(poses=True, weight=False, bias=False)
        inputs, kept = self.inputs, self.kept
        del self.inputs, self.kept
        gradient = self.kernels.backward(inputs, kept, grad, None, wanted, once=True)[0]
        assert gradient is not None
        return gradient
