"""One pass of a network with frozen weights: activations of a layer forward, the image's gradient back.

By the kernels of a `FrozenNetwork` where it has them, else by the network's own forward and autograd. Either can be
recorded: nothing in them waits for the host unless the network itself does.
"""

import weakref
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.models import GammaCapsNet, has_kernels
from gammacaps.nn.frozen import frozen
from gammacaps.nn.vector import why_no_kernels
from gammacaps.ops import length
from gammacaps.ops.routing.choice import plain_wanted
from gammacaps.ops.vectors import TINY


@runtime_checkable
class Pass(Protocol):
    """`forward` and then `backward` of the same images, once each; `refresh` after weights have changed."""

    def refresh(self) -> None: ...
    def forward(self, images: Tensor) -> Tensor: ...
    def backward(self, grad: Tensor) -> Tensor: ...
    def margin(self, images: Tensor, labels: Tensor, sign: float) -> tuple[Tensor, Tensor]: ...


class PlainPass:
    """By the network's own forward and autograd, in half precision where `dtype` is one."""

    def __init__(self, model: nn.Module, dtype: torch.dtype, layer: int | None = None) -> None:
        # Whoever keeps passes by model does not keep the model alive.
        self._model, self.dtype, self.layer = weakref.ref(model), dtype, layer

    def refresh(self) -> None:
        """The network's own weights are used."""

    def forward(self, images: Tensor) -> Tensor:
        """The scores (B, N), or the activations of the layer."""
        model: Any = self._model()
        self.leaf = images.detach().requires_grad_()
        with torch.enable_grad(), frozen(model), half(images.device, self.dtype):
            if self.layer is None:
                self.given = model(self.leaf)
            else:
                self.given = model.parse(self.leaf, couplings=False).activations[self.layer]
        if not isinstance(self.given, Tensor):
            raise TypeError("it does not give a tensor")
        return self.given.detach()

    def backward(self, grad: Tensor) -> Tensor:
        """The image's gradient from the one at what `forward` gave; zero where the network hands none on."""
        given, leaf = self.given, self.leaf
        del self.given, self.leaf
        if not given.requires_grad:
            return torch.zeros_like(leaf)
        return torch.autograd.grad(given, leaf, grad, materialize_grads=True)[0]

    def margin(
        self, images: Float[Tensor, "B C H W"], labels: Int[Tensor, "B"], sign: float
    ) -> tuple[Float[Tensor, "B"], Float[Tensor, "B C H W"]]:
        """The margin, best wrong score less true score, and `sign` times its gradient."""
        scores, place = self.forward(images), labels.unsqueeze(1)
        true = scores.gather(1, place)  # B 1
        wrong, best = scores.scatter(1, place, -torch.inf).max(dim=1, keepdim=True)
        grad = torch.zeros_like(scores).scatter_(1, best, sign).scatter_(1, place, -sign)
        return (wrong - true).squeeze(1).float(), self.backward(grad)


class KernelPass:
    """By the kernels of a `FrozenNetwork`, for batches of one size."""

    def __init__(self, model: GammaCapsNet, batch: int, dtype: torch.dtype, layer: int | None = None) -> None:
        from gammacaps.models.frozen import FrozenNetwork

        with torch.autocast("cuda", enabled=False):
            self.network, self.layer = FrozenNetwork(model, batch, dtype), layer

    def refresh(self) -> None:
        """Arranges the present weights for the kernels."""
        with torch.autocast("cuda", enabled=False):
            self.network.refresh()

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B n"]:
        """The lengths of the class capsules, or of the layer's."""
        self.poses = self.network.forward(images, self.layer)
        self.lengths = length(self.poses)
        return self.lengths

    def backward(self, grad: Float[Tensor, "B n"]) -> Float[Tensor, "B C H W"]:
        """The image's gradient from the one at the lengths."""
        poses, lengths = self.poses, self.lengths
        del self.poses, self.lengths
        return self.network.backward(poses * (grad / lengths.clamp_min(TINY)).unsqueeze(-1))

    def margin(
        self, images: Float[Tensor, "B C H W"], labels: Int[Tensor, "B"], sign: float
    ) -> tuple[Float[Tensor, "B"], Float[Tensor, "B C H W"]]:
        """The margin, best wrong length less true length, and `sign` times its gradient."""
        from gammacaps.ops.kernels.capsules import margin_gradient

        margins, grad = margin_gradient(self.network.forward(images), labels, sign)
        return margins, self.network.backward(grad)


def new_pass(model: nn.Module, batch: int, dtype: torch.dtype, layer: int | None = None) -> Pass:
    """A pass for batches of one size, by kernels where the network has them."""
    if runs_by_kernels(model):
        assert has_kernels(model)
        return KernelPass(model, batch, dtype, layer)
    return PlainPass(model, dtype, layer)


def runs_by_kernels(model: nn.Module) -> bool:
    """Whether there are kernels for this network, where it lies and as it is."""
    return (
        has_kernels(model) and not model.depends_on_neighbours and why_no_kernels(model) is None and not plain_wanted()
    )


def half(device: torch.device, dtype: torch.dtype) -> Any:
    """Autocast to `dtype` if that is half precision; a recording must cast weights itself, and not find them cast."""
    return torch.autocast(device.type, dtype, enabled=dtype != torch.float32, cache_enabled=False)


def autocast_dtype(device: torch.device) -> torch.dtype:
    """What autocast makes of products now; float32 where it is off."""
    on = torch.is_autocast_enabled(device.type)
    return torch.get_autocast_dtype(device.type) if on else torch.float32
