"""The tree objective: a hidden capsule that speaks for the image's class gives its vote to the capsule of that class.

The gamma objective says on which images a hidden capsule is active, not where its vote goes: by SDA a vote goes to the
parent it lies nearest to, which may be another class. For the set e_j of hidden capsule j and its coupling c_jy to the
capsule of the image's class y the term is -log c_jy where y is in e_j and 0 elsewhere: the cross-entropy of its
couplings to that one class. Its mean over the capsules and images of the batch counts all alike, so that the parts of a
batch add up to it.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Couplings below count as this, for their logarithm; their gradient is 0, so that votes most astray are not pulled.
LEAST = 1e-6


def parent_cross_entropy(
    couplings: Float[Tensor, "B J N"], labels: Int[Tensor, "B"], speaks: Bool[Tensor, "B J"]
) -> Float[Tensor, ""]:
    """The mean over images and capsules of -log of the coupling to the image's class, 0 where it is not spoken for."""
    to_class = couplings[torch.arange(len(labels), device=labels.device), :, labels]  # B J
    return -(to_class.clamp_min(LEAST).log() * speaks).mean()
