"""The vote attack on capsule networks (Gu, Wu and Tresp, 2021): a surrogate whose routing is the mean of the votes."""

import dataclasses

from gammacaps.attacks.gradient import Classifier
from gammacaps.errors import InputError
from gammacaps.models import CapsuleModel, GammaCapsNet, MatrixCapsNet


def vote_surrogate(model: Classifier) -> CapsuleModel:
    """The same network, on the same weights, with uniform couplings: attack it, and test the images on the real one.

    A layer's first routing iteration couples every capsule with all parents alike, so one iteration is the mean of the
    votes, on the scale (I/J) that the layer above has learned. An attack on it need not pass through the couplings,
    whose gradients may be small or point nowhere.
    """
    if isinstance(model, GammaCapsNet):
        surrogate: CapsuleModel = GammaCapsNet(dataclasses.replace(model.config, iterations=1))
    elif isinstance(model, MatrixCapsNet):
        surrogate = MatrixCapsNet(dataclasses.replace(model.config, iterations=1))
    else:
        raise InputError(f"A {type(model).__name__} has no votes: the vote attack takes a capsule network.")
    surrogate.load_state_dict(model.state_dict(keep_vars=True), assign=True)
    return surrogate.train(model.training)
