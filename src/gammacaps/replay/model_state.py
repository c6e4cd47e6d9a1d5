"""What a recorded pass of a network depends on beside the images, and which networks must not be recorded."""

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parallel import DataParallel, DistributedDataParallel

PLAIN = (bool, int, float, str, type(None), torch.dtype)
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# Parts that answer at random, or by the batch, while they are in training mode.
CHANGING = (_DropoutNd, nn.RReLU, _NormBase)


def fingerprint(model: nn.Module) -> tuple[object, ...]:
    """All that a recording has taken over from the network: where tensors lie, modes, numbers and words of its parts.

    The content of tensors is not in it: a recording reads that anew. Nor is what a network keeps in lists and
    dictionaries of its own.
    """
    parts: list[object] = [_settings()]
    for part in model.modules():
        for name, value in part.__dict__.items():
            if isinstance(value, PLAIN):
                parts.append((name, value))
            elif isinstance(value, Tensor):
                parts.append(_place(value))
            elif isinstance(value, tuple) and all(isinstance(one, PLAIN) for one in value):
                parts.append((name, value))
        parts.extend(_place(tensor) for tensor in (*part._parameters.values(), *part._buffers.values()))
    return tuple(parts)


def why_not_recorded(model: nn.Module) -> str | None:
    """Why replaying would not give what the network gives, as far as it shows; None where nothing speaks against it."""
    if torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks:
        return "hooks on all modules would not be called"
    for part in model.modules():
        if isinstance(part, DataParallel | DistributedDataParallel):
            return "it runs on several devices"
        if any(getattr(part, hooks, None) for hooks in HOOKS):
            return f"the hooks of its {type(part).__name__} would not be called"
        if part.training and isinstance(part, CHANGING) and not _idle(part):
            return f"its {type(part).__name__} is in training mode: call eval() first"
    return None


def _idle(part: nn.Module) -> bool:
    """A part that could change what it says and does not: dropout of nothing."""
    return isinstance(part, _DropoutNd) and part.p == 0


def _place(tensor: Tensor | None) -> object:
    if tensor is None:
        return None
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def _settings() -> tuple[bool, ...]:
    """Of torch, by which it chooses kernels."""
    cudnn = torch.backends.cudnn
    return cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, torch.backends.cuda.matmul.allow_tf32
