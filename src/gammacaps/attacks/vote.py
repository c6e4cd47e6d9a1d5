"""The vote attack on capsule networks (Gu, Wu and Tresp, 2021): a surrogate whose routing is the mean of the votes."""

from gammacaps.attacks.gradient import Classifier
from gammacaps.errors import InputError
from gammacaps.models import CapsuleModel, has_capsules


def vote_surrogate(model: Classifier) -> CapsuleModel:
    """The same network, on the same weights, with uniform couplings: attack it, and test the images on the real one.

    An attack on it need not pass through the couplings, whose gradients may be small or point nowhere.
    """
    if not has_capsules(model):
        raise InputError(f"A {type(model).__name__} has no votes: the vote attack takes a capsule network.")
    return model.mean_votes()
