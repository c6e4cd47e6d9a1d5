"""`route`: one layer of capsules votes for the next, by any rule and backend."""

from typing import NamedTuple, get_args

import torch
from torch import Tensor

from gammacaps.errors import InputError, check_choice
from gammacaps.names import Backend as BackendName
from gammacaps.names import ScaleOver
from gammacaps.ops.routing.backend import Backend, Routing, Settings
from gammacaps.ops.routing.choice import FORMULA, choose
from gammacaps.ops.routing.native.backend import Native
from gammacaps.ops.routing.rules import NATIVE, TRITON, route_by_formula, rule_named
from gammacaps.ops.routing.written_out import WrittenOut
from gammacaps.ops.torch_func import transformed


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
        rule: "sda", scaled distance agreement, "rba", routing by agreement, or one that `add_rule` added.
        iterations: how often couplings and upper poses are computed.
        scale_over: SDA's mean distance is taken over each lower capsule's parents ("capsule", the paper) or
            over the whole batch ("batch", the reference code; an image's answer then depends on its neighbours).
        couplings: whether to return the couplings c_ij, which sum to 1 over j.
        backend: "auto" (kernels on a GPU, compiled code on a CPU, where they can run), "torch" or "triton". What
            they don't have of a rule that was added is computed by its formula, which is said once.

    Sums run in float32 for half-precision inputs, also under autocast; the result has the inputs' dtype. The
    gradient flows through all iterations and is finite at zero vectors. Under torch.func and forward-mode
    differentiation the formulas of `rules.py` are used, which keep more and take longer.
    """
    dtype = _check(poses, weight, bias, iterations, scale_over, backend)
    settings = Settings(rule_named(rule), iterations, scale_over)
    if torch.compiler.is_exporting():  # neither code of our own nor a written-out gradient can leave with a graph
        return _route_by_formula(poses, weight, bias, settings, couplings, dtype)
    transforming = transformed(poses, weight, bias)
    chosen = choose(backend, settings, dtype, poses, weight, transforming=transforming)
    if chosen == TRITON:
        return _route_by_kernels(poses, weight, bias, settings, couplings, dtype)
    with torch.autocast(poses.device.type, enabled=False):
        if chosen == FORMULA:
            return _route_by_formula(poses, weight, bias, settings, couplings, dtype)
        wide = torch.promote_types(dtype, torch.float32)
        computes: Backend = Native(settings) if chosen == NATIVE else WrittenOut(settings)
        v, c = Routing.apply(poses.to(wide), weight.to(wide), None if bias is None else bias.to(wide), computes)
    return Routed(v.to(dtype), c.to(dtype) if couplings else None)


def _route_by_kernels(
    poses: Tensor, weight: Tensor, bias: Tensor | None, settings: Settings, couplings: bool, dtype: torch.dtype
) -> Routed:
    from gammacaps.ops.routing.kernels import operator

    learning = torch.is_grad_enabled() and (weight.requires_grad or (bias is not None and bias.requires_grad))
    keep = learning or (torch.is_grad_enabled() and poses.requires_grad)
    name, iterations = settings.rule.name, settings.iterations
    v, c, *_ = operator.route(poses, weight, bias, name, iterations, couplings, keep, learning)
    return Routed(v.to(dtype), c.to(dtype) if couplings else None)


def _route_by_formula(
    poses: Tensor, weight: Tensor, bias: Tensor | None, settings: Settings, couplings: bool, dtype: torch.dtype
) -> Routed:
    wide = torch.promote_types(dtype, torch.float32)
    inputs = (poses.to(wide), weight.to(wide), None if bias is None else bias.to(wide))
    v, c = route_by_formula(settings.rule, *inputs, settings.iterations, settings.scale_over)
    return Routed(v.to(dtype), c.to(dtype) if couplings else None)


def _check(
    poses: Tensor,
    weight: Tensor,
    bias: Tensor | None,
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
    check_choice("scale_over", scale_over, get_args(ScaleOver))
    check_choice("backend", backend, get_args(BackendName))
    if iterations < 1:
        raise InputError(f"Routing needs at least 1 iteration, not {iterations}.")
    return dtype
