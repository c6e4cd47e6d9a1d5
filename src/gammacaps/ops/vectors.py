"""Lengths of vectors, and the squash that makes a capsule's pose of any vector, with its gradient."""

import torch
from jaxtyping import Float
from torch import Tensor

# Vectors and distances shorter than this count as zero where something is divided by them.
TINY = 1e-12


def length(vectors: Float[Tensor, "*n D"]) -> Float[Tensor, "*n"]:
    """Euclidean length over the last axis; its gradient at the zero vector is zero, not NaN."""
    return torch.linalg.vector_norm(vectors, dim=-1)


def squash(s: Float[Tensor, "*n D"]) -> Float[Tensor, "*n D"]:
    """|s|^2 / (1 + |s|^2) s / |s|, written without the division by |s| (Algorithm 1, line 7)."""
    norm = length(s).unsqueeze(-1)
    return s * (norm / (1 + norm * norm))


def squash_gradient(s: Float[Tensor, "*n D"], grad: Float[Tensor, "*n D"]) -> Float[Tensor, "*n D"]:
    """The gradient at s of squash(s) = s n / (1 + n^2), n = |s|."""
    norm = length(s).unsqueeze(-1)
    along = (s * grad).sum(-1, keepdim=True) / norm.clamp_min(TINY)
    denominator = 1 + norm * norm
    return grad * (norm / denominator) + s * (along * (1 - norm * norm) / (denominator * denominator))
