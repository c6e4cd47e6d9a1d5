"""When a gradient that is written out won't do: torch.func and forward-mode differentiation need the formulas."""

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual


def transformed(*tensors: Tensor | None) -> bool:
    """Whether a transform of torch.func is at work, or one of the tensors has a forward-mode tangent or is many in one.

    None of them can look into code of our own, nor into a gradient that was written for the reverse mode.
    """
    # torch.autograd.Function asks the same; there is no public name for it.
    if torch._C._are_functorch_transforms_active():
        return True
    if torch.compiler.is_compiling():  # which has neither of the others
        return False
    for tensor in tensors:
        # Many in one are the gradients of torch.autograd.functional.jacobian(..., vectorize=True). By a loop, since
        # this is asked for each layer of each pass.
        if tensor is not None and (unpack_dual(tensor).tangent is not None or _is_many(tensor)):
            return True
    return False


_is_many = torch._C._functorch.is_legacy_batchedtensor
