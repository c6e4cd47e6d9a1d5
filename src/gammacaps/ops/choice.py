"""Where kernels beside those of routing are used."""

import importlib.util

import torch
from torch import Tensor

from gammacaps.ops.routing.choice import plain_wanted
from gammacaps.ops.torch_func import transformed


def fused_pooling(features: Tensor) -> bool:
    """Whether bias, ReLU and pooling of these features can be taken together: on a GPU, where Triton is."""
    if not features.is_cuda or features.dtype == torch.float64 or plain_wanted() or transformed(features):
        return False
    return not torch.compiler.is_compiling() and importlib.util.find_spec("triton") is not None
