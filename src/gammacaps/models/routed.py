"""What the networks have in common whose capsules are `primary` and then, layer by layer, those of `routed`."""

import copy
import dataclasses
from typing import Any

from torch import Tensor, nn

from gammacaps.models.parse import Parse
from gammacaps.models.protocol import CapsuleModel
from gammacaps.models.shared_weights import on_same_weights
from gammacaps.nn import MatrixCapsules, MatrixLayer, RoutedCapsules


class RoutedNetwork(CapsuleModel):
    """Its configuration names the number of iterations, which each layer of `routed` has too."""

    config: Any
    primary: nn.Module
    routed: nn.ModuleList

    @property
    def capsule_modules(self) -> tuple[nn.Module, ...]:
        return (self.primary, *self.routed)

    def mean_votes(self) -> "RoutedNetwork":
        """A layer's first iteration couples every capsule with all parents alike, so one is the mean of the votes.

        It is on the scale (I/J) that the layer above has learned.
        """
        other = on_same_weights(self)
        other.config, other.iterations = dataclasses.replace(self.config, iterations=1), 1
        for layer in other.routed:
            assert isinstance(layer, RoutedCapsules | MatrixCapsules)
            layer.iterations = 1
        return other

    def couplings_after(self, iterations: int, parse: Parse) -> tuple[Tensor, ...]:
        """Those of layers with so many: no iteration, of SDA, RBA or EM, knows how many will follow."""
        layers = zip(self.routed, parse.poses[:-1], parse.activations[:-1], strict=True)
        return tuple(_couplings(iterations, *layer) for layer in layers)


def _couplings(iterations: int, layer: nn.Module, poses: Tensor, activations: Tensor) -> Tensor:
    assert isinstance(layer, RoutedCapsules | MatrixCapsules)
    shorter = copy.copy(layer)  # with the same weights
    shorter.iterations = iterations
    below = MatrixLayer(poses, activations) if isinstance(layer, MatrixCapsules) else poses
    return shorter(below, True).couplings
