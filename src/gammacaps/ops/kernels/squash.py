"""The squash within Triton kernels, and its gradient: from squared lengths, since tiles sum over different axes."""

from typing import no_type_check

import triton
import triton.language as tl

from gammacaps.ops import vectors

TINY = tl.constexpr(vectors.TINY)


@triton.jit
@no_type_check
def squash_factor(square):
    """n / (1 + n^2), by which squash(s) is s times it, from n^2 = |s|^2."""
    return tl.sqrt(square) / (1 + square)


@triton.jit
@no_type_check
def squash_gradient_factors(square, product):
    """By what the gradient at squash(s), and s, are multiplied to give the gradient at s; `product` is s . gradient."""
    norm, below = tl.sqrt(square), 1 + square
    along = product / tl.maximum(norm, TINY)
    return norm / below, along * (1 - square) / (below * below)
