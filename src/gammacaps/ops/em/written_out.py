"""The gradient of EM routing by hand, in plain torch: what the kernels compute, for whoever wants to read it first.

Letters are those of `formula.py`. A step back through an iteration goes from the parents (mean, variance,
activation) to the weights that their children had, from there through the softmax of each child to its log densities,
and so to the parents of the iteration before. The votes collect what each step gives them.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gammacaps.ops.em.formula import (
    TINY,
    Fit,
    cost_factor,
    e_step,
    gathered,
    inverse_temperature,
    m_step,
    parents_of,
)


class EMGradients(NamedTuple):
    votes: Tensor  # B L K J P
    activations: Tensor  # B n
    beta_v: Tensor  # J
    beta_a: Tensor  # J


class AtParents(NamedTuple):
    """What an M-step hands back: the gradients of its weights and votes, and of the betas."""

    weight: Tensor  # B L K J
    votes: Tensor  # B L K J P
    beta_v: Tensor  # J
    beta_a: Tensor  # J


def em_gradient(
    votes: Tensor,  # B L K J P
    activations: Tensor,  # B n
    children: Tensor,  # L K
    beta_v: Tensor,  # J
    beta_a: Tensor,  # J
    grad_poses: Tensor,  # B L J P
    grad_activations: Tensor,  # B L J
    grad_couplings: Tensor | None = None,  # B L K J
    *,
    iterations: int = 3,
) -> EMGradients:
    """The gradients of what `em_route` is given, from those at what it gives."""
    count, J = activations.shape[1], votes.shape[3]
    share = 1 / parents_of(children, count, J)[children].to(votes.dtype)  # L K
    couplings, fits = [share.unsqueeze(-1).expand(votes.shape[:4])], []  # of each iteration
    seen = gathered(activations, children).unsqueeze(-1)  # B L K 1
    for i in range(iterations):
        fits.append(m_step(couplings[i] * seen, votes, beta_v, beta_a, inverse_temperature(i)))
        if i < iterations - 1:
            couplings.append(e_step(fits[i], children, count))

    at_mean, at_variance, at_active = grad_poses, torch.zeros_like(grad_poses), grad_activations
    total = EMGradients(*(torch.zeros_like(t) for t in (votes, activations, beta_v, beta_a)))
    for i in reversed(range(iterations)):
        R, steepness = couplings[i], inverse_temperature(i)
        step = m_step_gradient(fits[i], R * seen, votes, beta_v, steepness, at_mean, at_variance, at_active)
        child = by_child((R * step.weight).sum(-1), children, count)  # B n
        total = EMGradients(
            total.votes + step.votes,
            total.activations + child,
            total.beta_v + step.beta_v,
            total.beta_a + step.beta_a,
        )
        if i == 0:
            break
        at_R = seen * step.weight  # B L K J
        if i == iterations - 1 and grad_couplings is not None:
            at_R = at_R + grad_couplings
        mean = by_child((R * at_R).sum(-1), children, count)  # B n: a softmax takes off the mean of its gradients
        slope = R * (at_R - gathered(mean, children).unsqueeze(-1))  # B L K J, at the logits
        before = fits[i - 1]
        apart = (votes - before.mean) / before.variance  # B L K J P
        total = total._replace(votes=total.votes - slope.unsqueeze(-1) * apart)
        at_active = slope.sum(2) / (before.activations + TINY)
        at_mean = (slope.unsqueeze(-1) * apart).sum(2)
        at_variance = 0.5 * (slope.unsqueeze(-1) * (apart.square() - 1 / before.variance)).sum(2)
    return total


def m_step_gradient(
    fit: Fit,
    weight: Tensor,  # B L K J
    votes: Tensor,  # B L K J P
    beta_v: Tensor,  # J
    steepness: float,
    at_mean: Tensor,  # B L J P
    at_variance: Tensor,  # B L J P
    at_active: Tensor,  # B L J
) -> AtParents:
    """One M-step back: from the gradients at mean, variance and activation."""
    _, _, K, J, P = votes.shape
    mean, variance, total = fit.mean.squeeze(2), fit.variance.squeeze(2), weight.sum(2)
    # The activation: sigmoid(steepness (beta_a - cost)), cost = (P beta_v + sum of log sigma) total factor.
    at_beta_a = steepness * at_active * fit.activations * (1 - fit.activations)  # B L J
    at_cost = -at_beta_a * cost_factor(K, J)
    at_total = at_cost * (P * beta_v + 0.5 * variance.log().sum(-1))
    at_variance = at_variance + (0.5 * at_cost * total).unsqueeze(-1) / variance
    # Normal weights fall short of 1 by `missing`, so that votes lie about the mean not quite evenly.
    inverse = 1 / (total + TINY)  # B L J
    missing = TINY * inverse
    at_mean = at_mean - 2 * missing.unsqueeze(-1) * mean * at_variance
    linear = (at_mean * inverse.unsqueeze(-1)).unsqueeze(2)  # B L 1 J P
    square = (at_variance * inverse.unsqueeze(-1)).unsqueeze(2)
    offset = votes - mean.unsqueeze(2)  # B L K J P
    constant = at_total - (square.squeeze(2) * (variance - TINY)).sum(-1)  # B L J
    at_weight = (offset * (linear + square * offset)).sum(-1) + constant.unsqueeze(2)
    at_votes = weight.unsqueeze(-1) * (linear + 2 * square * offset)
    return AtParents(at_weight, at_votes, (P * at_cost * total).sum((0, 1)), at_beta_a.sum((0, 1)))


def by_child(values: Tensor, children: Tensor, count: int) -> Tensor:
    """The sums (B n) over each child's windows of values (B L K)."""
    return values.new_zeros(len(values), count).index_add(1, children.flatten(), values.flatten(1))
