"""`route`: one layer of capsules votes for the next. The dispatcher over rules and backends."""

import importlib.util
import os
from collections.abc import Sequence
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from gammacaps.errors import InputError, check_choice
from gammacaps.names import Backend, RoutingRule, ScaleOver
from gammacaps.ops import reference
from gammacaps.ops.adjoint import Routing, Rule
from gammacaps.ops.native.routing import NativeRouting, why_not_native
from gammacaps.ops.transforms import transformed


class Routed(NamedTuple):
    """What routing gives: the upper capsules' poses (B, J, D) and the couplings (B, I, J), or None."""

    poses: Tensor
    couplings: Tensor | None


def route(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    rule: str = "sda",
    iterations: int = 3,
    scale_over: str = "capsule",
    couplings: bool = True,
    backend: str = "auto",
) -> Routed:
    """Routes lower capsules to upper capsules (Algorithm 1 of the paper for rule "sda").

    Args:
        poses: the lower capsules (B, I, d).
        weight: the matrices W_ij that turn a lower pose into a vote (I, J, d, D).
        bias: added to s_j before the squash (J, D).
        rule: "sda", scaled distance agreement, or "rba", routing by agreement.
        iterations: how often couplings and upper poses are computed.
        scale_over: SDA's mean distance is taken over each lower capsule's parents ("capsule", the paper) or
            over the whole batch ("batch", the reference code; an image's answer then depends on its neighbours).
        couplings: whether to return the couplings c_ij, which sum to 1 over j.
        backend: "auto" (kernels on a GPU, compiled code on a CPU, where they can run), "torch" or "triton".

    Sums run in float32 for half-precision inputs, also under autocast; the result has the inputs' dtype. The
    gradient flows through all iterations and is finite at zero vectors. Under torch.func and forward-mode
    differentiation the formulas of `reference.py` are used, which keep more and take longer.
    """
    dtype = _check(poses, weight, bias, rule, iterations, scale_over, backend)
    if torch.compiler.is_exporting():  # neither code of our own nor a written-out gradient can leave with a graph
        return _route_by_formulas(poses, weight, bias, rule, iterations, scale_over, couplings, dtype)
    transforming = transformed(poses, weight, bias)
    triton = _use_triton(backend, poses, weight, dtype, scale_over, transforming)
    if transforming or poses.shape[0] == 0:  # or nothing to route, which kernels can't start on
        with torch.autocast(poses.device.type, enabled=False):
            return _route_by_formulas(poses, weight, bias, rule, iterations, scale_over, couplings, dtype)
    if triton:
        return _route_by_kernels(poses, weight, bias, rule, iterations, couplings, dtype)
    wide = torch.promote_types(dtype, torch.float32)
    how = Rule(rule, iterations, scale_over)
    native = backend == "auto" and not plain_wanted() and why_not_native(poses, weight, wide, how) is None
    with torch.autocast(poses.device.type, enabled=False):
        given = (poses.to(wide), weight.to(wide), None if bias is None else bias.to(wide), how)
        if native:
            v, c = NativeRouting.apply(*given)  # c: B I J
        else:
            v, c = Routing.apply(*given)
            c = c.transpose(1, 2)
    return Routed(v.to(dtype), c.to(dtype) if couplings else None)


def why_not_triton(device: torch.device, dtype: torch.dtype, shape: Sequence[int], scale_over: str) -> str | None:
    """Why the Triton kernels can't route by a weight of this shape (I, J, d, D) here; None where they can."""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed: pip install triton"
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"they need a CUDA device, and the tensors are on {device.type}"
    if dtype == torch.float64:
        return "they compute in float32, and the tensors are float64"
    if scale_over == "batch":
        return "they scale distances over each capsule, not over the batch"
    if max(shape[2:]) > 64:
        return f"they take capsules of at most 64 entries, not {max(shape[2:])}"
    return None


def plain_wanted() -> bool:
    """Whether the user asks for plain PyTorch wherever there is a choice, say to compare: GAMMACAPS_PLAIN=1."""
    return os.environ.get("GAMMACAPS_PLAIN", "0") not in ("", "0")


def _use_triton(
    backend: str, poses: Tensor, weight: Tensor, dtype: torch.dtype, scale_over: str, transforming: bool
) -> bool:
    if backend == "torch" or (backend == "auto" and (not poses.is_cuda or plain_wanted())):
        return False
    reason = why_not_triton(poses.device, dtype, weight.shape, scale_over)
    if transforming:
        reason = "torch.func and forward-mode differentiation can't look into them"
    if reason is not None and backend == "triton":
        raise InputError(f"The Triton kernels can't be used: {reason}. Use backend='auto' or 'torch'.")
    return reason is None


def _route_by_kernels(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rule: str,
    iterations: int,
    couplings: bool,
    dtype: torch.dtype,
) -> Routed:
    from gammacaps.ops.kernels import routing

    learning = torch.is_grad_enabled() and (weight.requires_grad or (bias is not None and bias.requires_grad))
    keep = learning or (torch.is_grad_enabled() and poses.requires_grad)
    v, c, *_ = routing.route(poses, weight, bias, rule, iterations, couplings, keep, learning)
    return Routed(v.to(dtype), c.to(dtype) if couplings else None)


def _route_by_formulas(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rule: str,
    iterations: int,
    scale_over: str,
    couplings: bool,
    dtype: torch.dtype,
) -> Routed:
    wide = torch.promote_types(dtype, torch.float32)
    given = (poses.to(wide), weight.to(wide), None if bias is None else bias.to(wide), iterations)
    v, c = reference.sda(*given, scale_over) if rule == "sda" else reference.rba(*given)
    return Routed(v.to(dtype), c.to(dtype) if couplings else None)


def _check(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rule: str,
    iterations: int,
    scale_over: str,
    backend: str,
) -> torch.dtype:
    """Says in one sentence what does not fit; returns the dtype of the result."""
    if poses.dim() != 3 or weight.dim() != 4:
        raise InputError(
            f"route takes poses (B, I, d) and weight (I, J, d, D), but got shapes {tuple(poses.shape)} and "
            f"{tuple(weight.shape)}: reshape them."
        )
    I, J, d, D = weight.shape
    if tuple(poses.shape[1:]) != (I, d):
        raise InputError(
            f"The weight is for {I} lower capsules of size {d}, but the poses hold {poses.shape[1]} of size "
            f"{poses.shape[2]}: give poses of shape (B, {I}, {d})."
        )
    if J < 2:
        raise InputError(
            "Routing needs at least 2 upper capsules (J = 1 given): the scale t is undefined for one, so use "
            "two capsules even for a yes-or-no question."
        )
    if bias is not None and tuple(bias.shape) != (J, D):
        raise InputError(f"The bias must have the shape ({J}, {D}) of the upper capsules, not {tuple(bias.shape)}.")
    dtype = torch.promote_types(poses.dtype, weight.dtype)
    if bias is not None:
        dtype = torch.promote_types(dtype, bias.dtype)
    for name, tensor in (("poses", poses), ("weight", weight), ("bias", bias)):
        if tensor is not None and not tensor.is_floating_point():
            raise InputError(f"The {name} must be floating point, not {tensor.dtype}: convert with .float().")
        if tensor is not None and tensor.device != poses.device:
            raise InputError(f"The {name} is on {tensor.device} but the poses on {poses.device}: move one of them.")
    check_choice("rule", rule, get_args(RoutingRule))
    check_choice("scale_over", scale_over, get_args(ScaleOver))
    check_choice("backend", backend, get_args(Backend))
    if iterations < 1:
        raise InputError(f"Routing needs at least 1 iteration, not {iterations}.")
    return dtype
