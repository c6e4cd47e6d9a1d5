"""The gamma objective: each hidden capsule learns to be active on the images of its classes, and on no others.

The paper defines a gamma-capsule (Definitions 3.1 to 3.4) by a feature, the capsule's activity for a set of classes,
that stays useful under attack. Trained under attack on that activity itself, a capsule becomes one: for the set e_j of
capsule j and its length a_j the term is the cross-entropy between a_j and whether the image's class is in e_j, its mean
over the capsules of a layer and the images of the batch. A mean over images is the expectation of the definitions, over
the data as they are, and does not depend on how a batch is split.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot

from gammacaps.models import Parse
from gammacaps.training.class_sets import ClassSets
from gammacaps.training.tree_objective import parent_cross_entropy

ON = 0.5  # a capsule longer than this counts as active, as in the audit
NEAR_END = 1e-6  # lengths nearer to 0 or 1 count as this, for their logarithm
ACTIVE = "active"  # among the losses of a step: on what share of its images each capsule was active, by class
RARE = 0.01  # a capsule active on fewer images is dead, and one inactive on fewer is always on


def set_entropy(lengths: Float[Tensor, "B J"], speaks: Bool[Tensor, "B J"]) -> Float[Tensor, ""]:
    """The mean cross-entropy between lengths and whether each capsule speaks for the class of each image."""
    a = lengths.clamp(NEAR_END, 1 - NEAR_END)
    return -torch.where(speaks, a.log(), (-a).log1p()).mean()


class GammaObjective(nn.Module):
    """The term of all hidden layers, and what their capsules did in a batch."""

    def __init__(self, sets: ClassSets, classes: int) -> None:
        super().__init__()
        self.layers = tuple(sets)
        for place, members in enumerate(sets.values()):
            table = torch.zeros(classes, len(members), dtype=torch.bool)  # N J
            for capsule, labels in enumerate(members):
                table[list(labels), capsule] = True
            self.register_buffer(f"sets_{place}", table, persistent=False)

    def forward(self, parse: Parse, labels: Int[Tensor, "B"]) -> tuple[Float[Tensor, ""], Float[Tensor, "N J"]]:
        """The term, summed over the layers, and the share of images of each class on which each capsule is active.

        Shares are of all images of the batch, and so add up over its parts.
        """
        terms, active = [], []
        for place, layer in enumerate(self.layers):
            lengths = parse.activations[parse.layers.index(layer)].float()  # B J
            sets: Tensor = self.get_buffer(f"sets_{place}")
            terms.append(set_entropy(lengths, sets[labels]))
            active.append((lengths.detach() > ON).float())
        members = one_hot(labels, len(sets)).float()  # B N
        return torch.stack(terms).sum(), members.T @ torch.cat(active, dim=1) / len(labels)

    def tree(self, parse: Parse, labels: Int[Tensor, "B"]) -> Float[Tensor, ""]:
        """The term of the tree objective, for the capsules that vote for class capsules."""
        couplings = parse.couplings[-1]
        assert couplings is not None
        sets: Tensor = self.get_buffer(f"sets_{len(self.layers) - 1}")
        return parent_cross_entropy(couplings.float(), labels, sets[labels])


def set_counts(active: Float[Tensor, "N J"]) -> dict[str, int]:
    """How many hidden capsules are always on, dead, and how many different class sets the others speak for."""
    share = active.sum(0)  # J: of all images
    gain = len(active) * active - share  # N J: above 0 for the classes that a capsule speaks for
    always, dead = share > 1 - RARE, share < RARE
    sets = {tuple(column) for column in (gain[:, ~(always | dead)] > 1e-6).T.tolist()}
    return {"always_on": int(always.sum()), "dead": int(dead.sum()), "class_sets": len(sets)}
