"""Which backend routes: the one place that chooses, and says what it can't use."""

import importlib.util
import os
import warnings

import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.ops.routing.backend import Settings
from gammacaps.ops.routing.native.backend import why_not_native
from gammacaps.ops.routing.rules import NATIVE, TRITON, WRITTEN_OUT

FORMULA = "formula"


def choose(
    asked: str, settings: Settings, dtype: torch.dtype, poses: Tensor, weight: Tensor, *, transforming: bool
) -> str:
    """TRITON, NATIVE, WRITTEN_OUT or FORMULA, for what the caller of `route` asked for and gave.

    The first that fits and has the rule; where none has it, that is said once, and the formula is used.
    """
    if _use_triton(asked, settings, dtype, poses, weight, transforming=transforming):
        return TRITON
    if transforming or poses.shape[0] == 0:  # or nothing to route, which the others can't start on
        return FORMULA
    free = asked == "auto" and not plain_wanted()
    wide = torch.promote_types(dtype, torch.float32)  # in which it will be computed
    native = free and why_not_native(settings, wide, weight, poses) is None
    fitting = (NATIVE, WRITTEN_OUT) if native else (WRITTEN_OUT,)
    for backend in fitting:
        if _has(backend, settings):
            return backend
    _say_once(settings.rule.name, TRITON if free and poses.is_cuda else fitting[0])
    return FORMULA


def why_not_triton(settings: Settings, dtype: torch.dtype, weight: Tensor) -> str | None:
    """Why the Triton kernels can't route by a weight (I, J, d, D) where it lies; None where they can."""
    if not _has(TRITON, settings):
        return f"they do not have the rule '{settings.rule.name}'"
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed: pip install triton"
    if weight.device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"they need a CUDA device, and the tensors are on {weight.device.type}"
    if dtype == torch.float64:
        return "they compute in float32, and the tensors are float64"
    if settings.scale_over == "batch":
        return "they scale distances over each capsule, not over the batch"
    if max(weight.shape[2:]) > 64:
        return f"they take capsules of at most 64 entries, not {max(weight.shape[2:])}"
    return None


def plain_wanted() -> bool:
    """Whether the user asks for plain PyTorch wherever there is a choice, say to compare: GAMMACAPS_PLAIN=1."""
    return os.environ.get("GAMMACAPS_PLAIN", "0") not in ("", "0")


def _use_triton(
    asked: str, settings: Settings, dtype: torch.dtype, poses: Tensor, weight: Tensor, *, transforming: bool
) -> bool:
    if asked == "torch" or (asked == "auto" and (not poses.is_cuda or plain_wanted())):
        return False
    reason = why_not_triton(settings, dtype, weight)
    if transforming:
        reason = "torch.func and forward-mode differentiation can't look into them"
    if reason is not None and asked == "triton":
        raise InputError(f"The Triton kernels can't be used: {reason}. Use backend='auto' or 'torch'.")
    return reason is None and poses.shape[0] > 0


def _has(backend: str, settings: Settings) -> bool:
    return backend in settings.rule.backends


_said: set[tuple[str, str]] = set()


def _say_once(rule: str, backend: str) -> None:
    if torch.compiler.is_compiling() or (rule, backend) in _said:
        return
    _said.add((rule, backend))
    warnings.warn(
        f"The rule '{rule}' has no {backend}: its formula is used instead, which takes more time and memory.",
        stacklevel=4,
    )
