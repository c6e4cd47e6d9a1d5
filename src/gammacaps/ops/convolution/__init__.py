"""Valid convolutions: `convolve`, as a product of patches on a CPU; `kernels` in Triton, for frozen weights."""

from gammacaps.ops.convolution.patches import convolve

__all__ = ["convolve"]
