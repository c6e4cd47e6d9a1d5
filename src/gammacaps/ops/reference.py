"""Routing as the paper writes it: the formulas in plain PyTorch, differentiated by autograd.

This file is for reading and for checking the faster backends. Shapes use the letters of the whole project:
B batch, I lower capsules, J upper capsules, d lower size, D upper size.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

# Vectors and distances shorter than this count as zero where something is divided by them.
TINY = 1e-12

# Section 4.1 sets c_ip = 0.9 whenever d_p = d_o / 2.
PARENT_COUPLING = 0.9
PARENT_DISTANCE = 0.5


def length(vectors: Float[Tensor, "*n D"]) -> Float[Tensor, "*n"]:
    """Euclidean length over the last axis; its gradient at the zero vector is zero, not NaN."""
    return torch.linalg.vector_norm(vectors, dim=-1)


def squash(s: Float[Tensor, "*n D"]) -> Float[Tensor, "*n D"]:
    """|s|^2 / (1 + |s|^2) s / |s|, written without the division by |s| (Algorithm 1, line 7)."""
    norm = length(s).unsqueeze(-1)
    return s * (norm / (1 + norm * norm))


def scale(parents: int) -> float:
    """The scale t times the mean distance d_o, for J parents: (log(c_ip (J-1)) - log(1-c_ip)) / (d_p - 1).

    Equation 7 with distances measured in units of d_o, so that b_ij = scale * d_ij / d_o. Negative.
    """
    agreement = math.log(PARENT_COUPLING * (parents - 1)) - math.log(1 - PARENT_COUPLING)
    return agreement / (PARENT_DISTANCE - 1)


def votes_of(poses: Float[Tensor, "B I d"], weight: Float[Tensor, "I J d D"]) -> Float[Tensor, "B I J D"]:
    """u_hat_{j|i} = W_ij v_i: what lower capsule i predicts for upper capsule j."""
    return torch.einsum("bid,ijde->bije", poses, weight)


def bound(votes: Float[Tensor, "B I J D"], poses: Float[Tensor, "B I d"]) -> Float[Tensor, "B I J D"]:
    """Shortens each vote to at most the length of the capsule that casts it (Algorithm 1, line 3)."""
    most, size = length(poses).unsqueeze(-1), length(votes)  # B I 1, B I J
    return votes * torch.where(size > most, most / size.clamp_min(TINY), 1).unsqueeze(-1)


def sda(
    poses: Float[Tensor, "B I d"],
    weight: Float[Tensor, "I J d D"],
    bias: Float[Tensor, "J D"] | None,
    iterations: int,
    scale_over: str,
) -> tuple[Float[Tensor, "B J D"], Float[Tensor, "B I J"]]:
    """Scaled-distance-agreement routing (Algorithm 1)."""
    votes = bound(votes_of(poses, weight), poses)  # B I J D
    b = votes.new_zeros(votes.shape[:3])  # B I J
    for _ in range(iterations):
        c = b.softmax(dim=-1)  # B I J
        s = torch.einsum("bij,bije->bje", c, votes)  # B J D
        v = squash(s if bias is None else s + bias)  # B J D
        distance = length(votes - v.unsqueeze(1))  # B I J
        usual = distance.mean(dim=-1, keepdim=True) if scale_over == "capsule" else distance.mean()
        b = scale(b.shape[-1]) * distance / usual.clamp_min(TINY)  # replaced, not accumulated
    return v, c


def rba(
    poses: Float[Tensor, "B I d"],
    weight: Float[Tensor, "I J d D"],
    bias: Float[Tensor, "J D"] | None,
    iterations: int,
) -> tuple[Float[Tensor, "B J D"], Float[Tensor, "B I J"]]:
    """Routing by agreement (Sabour, Frosst and Hinton, 2017, procedure 1)."""
    votes = votes_of(poses, weight)  # B I J D
    b = votes.new_zeros(votes.shape[:3])  # B I J
    for _ in range(iterations):
        c = b.softmax(dim=-1)  # B I J
        s = torch.einsum("bij,bije->bje", c, votes)  # B J D
        v = squash(s if bias is None else s + bias)  # B J D
        b = b + torch.einsum("bije,bje->bij", votes, v)
    return v, c
