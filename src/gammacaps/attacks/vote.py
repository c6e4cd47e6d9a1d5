"""The vote attack on capsule networks (Gu, Wu and Tresp, 2021): a surrogate whose routing is the mean of the votes."""

import dataclasses

from gammacaps.attacks.gradient import Classifier
from gammacaps.errors import InputError
from gammacaps.models import CapsuleModel, GammaCapsNet, MatrixCapsNet
from gammacaps.models.twin import twin
from gammacaps.nn import MatrixCapsules, RoutedCapsules


def vote_surrogate(model: Classifier) -> CapsuleModel:
    """The same network, on the same weights, with uniform couplings: attack it, and test the images on the real one.

    A layer's first routing iteration couples every capsule with all parents alike, so one iteration is the mean of the
    votes, on the scale (I/J) that the layer above has learned. An attack on it need not pass through the couplings,
    whose gradients may be small or point nowhere.
    """
    if not isinstance(model, GammaCapsNet | MatrixCapsNet):
        raise InputError(f"A {type(model).__name__} has no votes: the vote attack takes a capsule network.")
    surrogate = twin(model)
    surrogate.config = dataclasses.replace(model.config, iterations=1)
    for layer in surrogate.routed:
        assert isinstance(layer, RoutedCapsules | MatrixCapsules)
        layer.iterations = 1
    return surrogate
