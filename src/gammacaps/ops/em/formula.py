"""EM routing of matrix capsules (Hinton, Sabour and Frosst, 2018) with the corrections of Gritzman (2019).

Letters here: L parent positions, K children in a parent position's receptive field, J parent types, P entries of
a pose (16), n children in all. A child stands in the fields of several positions; its parents are all their types.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

TINY = 1e-9
FINAL_LAMBDA = 0.01


def inverse_temperature(iteration: int, final_lambda: float = FINAL_LAMBDA) -> float:
    """How steeply activations follow their costs; it grows with the iterations, counted from 0."""
    return float(final_lambda * (1 - 0.95 ** (iteration + 1)))


def cost_factor(K: int, J: int) -> float:
    """By what costs are scaled: 100 over the number of children to each parent."""
    return 100 * J / K


class EMRouted(NamedTuple):
    poses: Tensor  # B L J P
    activations: Tensor  # B L J
    couplings: Tensor  # B L K J: R as the last M-step used it; sums to 1 over a child's parents


def receptive_fields(height: int, width: int, types: int, kernel: int, stride: int) -> Int[Tensor, "L K"]:
    """Which child stands where: child (row, column, type) has the index (row * width + column) * types + type."""
    child = torch.arange(height * width * types).view(height, width, types)
    windows = child.unfold(0, kernel, stride).unfold(1, kernel, stride)  # rows columns types k k
    return windows.permute(0, 1, 3, 4, 2).flatten(2).flatten(0, 1)


def gathered(values: Float[Tensor, "B n *rest"], index: Int[Tensor, "*at"]) -> Float[Tensor, "B ..."]:
    """values[:, index]; on a CPU in a way whose gradient is the same each time with several threads too."""
    if values.is_cuda:
        return values[:, index]
    return values.index_select(1, index.flatten()).unflatten(1, index.shape)


def parents_of(children: Int[Tensor, "L K"], count: int, types: int) -> Int[Tensor, "n"]:
    """How many parents (positions times types) each child has; 0 for a child outside every field."""
    return torch.bincount(children.flatten(), minlength=count) * types


def votes_of(
    poses: Float[Tensor, "B n 16"],
    weight: Float[Tensor, "k J 4 4"],
    fields: Int[Tensor, "L K"],
    places: Float[Tensor, "n 16"] | None,
) -> Float[Tensor, "B L K J 16"]:
    """Each child's vote for each parent type, pose @ W; with coordinate addition where there are places."""
    # K J 4 4; shared weights are repeated over the places, the type running fastest.
    weight = weight.repeat(fields.shape[1] // len(weight), 1, 1, 1)
    seen = gathered(poses, fields).unflatten(-1, (4, 4))  # B L K 4 4
    votes = torch.einsum("blkpq,kjqr->blkjpr", seen, weight).flatten(-2)  # B L K J 16
    return votes if places is None else votes + places.to(votes).unsqueeze(1)


def em_route(
    votes: Float[Tensor, "B L K J P"],
    activations: Float[Tensor, "B n"],
    children: Int[Tensor, "L K"],
    beta_v: Float[Tensor, "J"],
    beta_a: Float[Tensor, "J"],
    *,
    iterations: int = 3,
    final_lambda: float = FINAL_LAMBDA,
    parents: Int[Tensor, "n"] | None = None,
) -> EMRouted:
    """Fits each parent's Gaussian to the votes of the children assigned to it, and the assignment to the fit.

    `parents` is what `parents_of` gives, for whoever has counted them already.
    """
    count, J = activations.shape[1], votes.shape[3]
    parents = parents_of(children, count, J) if parents is None else parents
    share = 1 / parents[children].to(votes.dtype)  # L K
    R = share.unsqueeze(-1).expand(votes.shape[:4])  # B L K J
    weight = gathered(activations, children).unsqueeze(-1)  # B L K 1
    for k in range(iterations):
        # R is multiplied by the child's activation and not normalised over its parents again: it would cancel.
        fit = m_step(R * weight, votes, beta_v, beta_a, inverse_temperature(k, final_lambda))
        if k < iterations - 1:
            R = e_step(fit, children, count)
    return EMRouted(fit.mean.squeeze(2), fit.activations, R)


class Fit(NamedTuple):
    """Each parent's Gaussian, its activation, and the squared deviations of the votes from its mean."""

    mean: Tensor  # B L 1 J P
    variance: Tensor  # B L 1 J P
    deviation: Tensor  # B L K J P
    activations: Tensor  # B L J


def m_step(
    weight: Float[Tensor, "B L K J"],
    votes: Float[Tensor, "B L K J P"],
    beta_v: Float[Tensor, "J"],
    beta_a: Float[Tensor, "J"],
    steepness: float,
) -> Fit:
    """The Gaussians that the weighed votes give, and the activations that their description lengths give."""
    _, _, K, J, P = votes.shape
    total = weight.sum(dim=2)  # B L J
    normal = (weight / (total + TINY).unsqueeze(2)).unsqueeze(-1)  # B L K J 1
    mean = (normal * votes).sum(dim=2, keepdim=True)  # B L 1 J P
    deviation = (votes - mean).square()  # B L K J P
    variance = (normal * deviation).sum(dim=2, keepdim=True) + TINY  # B L 1 J P
    cost = P * beta_v + 0.5 * variance.log().sum(-1).squeeze(2)  # B L J, summed over the P entries
    cost = cost * total * cost_factor(K, J)
    return Fit(mean, variance, deviation, torch.sigmoid(steepness * (beta_a - cost)))


def e_step(fit: Fit, children: Int[Tensor, "L K"], count: int) -> Float[Tensor, "B L K J"]:
    """How well each parent explains each child's vote, as shares over all parents of the child."""
    log_density = -0.5 * (fit.deviation / fit.variance + (2 * math.pi * fit.variance).log()).sum(-1)  # B L K J
    return softmax_over_parents((fit.activations + TINY).log().unsqueeze(2) + log_density, children, count)


def softmax_over_parents(
    logits: Float[Tensor, "B L K J"], children: Int[Tensor, "L K"], count: int
) -> Float[Tensor, "B L K J"]:
    """The E-step's softmax: each child's over all positions and types of its parents together."""
    index = children.flatten()
    flat = logits.flatten(1, 2)  # B LK J
    highest = flat.detach().amax(dim=-1)  # B LK
    peak = highest.new_full((flat.shape[0], count), -torch.inf)  # B n
    peak = peak.scatter_reduce(1, index.expand(flat.shape[0], -1), highest, "amax")
    weights = (flat - gathered(peak, index).unsqueeze(-1)).exp()  # B LK J
    total = weights.new_zeros(flat.shape[0], count).index_add(1, index, weights.sum(dim=-1))
    return (weights / gathered(total, index).unsqueeze(-1)).view_as(logits)
