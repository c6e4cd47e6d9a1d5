"""`vote_and_route`: a layer of matrix capsules votes for the next, by the formula or by Triton kernels."""

import importlib.util
import os
from collections.abc import Sequence
from typing import Any, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gammacaps.errors import InputError, check_choice
from gammacaps.names import Backend as BackendName
from gammacaps.ops.em.formula import EMRouted, em_route, votes_of
from gammacaps.ops.em.windows import Windows
from gammacaps.ops.routing.choice import plain_wanted
from gammacaps.ops.torch_func import transformed


def vote_and_route(
    poses: Float[Tensor, "B n 16"],
    activations: Float[Tensor, "B n"],
    weight: Float[Tensor, "k J 4 4"],
    beta_v: Float[Tensor, "J"],
    beta_a: Float[Tensor, "J"],
    fields: Int[Tensor, "L K"],
    parents: Int[Tensor, "n"],
    places: Float[Tensor, "n 16"] | None,
    iterations: int,
    windows: Windows | None = None,
    backend: str = "auto",
) -> EMRouted:
    """Each child's vote for each parent type, pose @ W, routed by EM; with coordinate addition where there are places.

    `windows` are the fields as numbers, by which kernels can route on a GPU; backend "auto" uses them there, "triton"
    says why it can't, "torch" is the formula. It is used under torch.func and torch.compile too, and for the gradient
    of a gradient. A function of its weights, so that it can be compiled as one.
    """
    inputs = (poses, activations, weight, beta_v, beta_a)
    check_choice("backend", backend, get_args(BackendName))
    if backend == "torch" or (backend == "auto" and (not poses.is_cuda or plain_wanted())):
        return route_by_formula(inputs, fields, parents, places, iterations)
    reason = why_no_em_kernels(weight, windows)
    if any(t.dtype != torch.float32 for t in inputs):
        reason = "they compute in float32, and the tensors are not"
    if torch.compiler.is_compiling() or transformed(*inputs):
        reason = "torch.func and torch.compile can't look into them"
    if reason is not None and backend == "triton":
        raise InputError(f"The Triton kernels can't be used: {reason}. Use backend='auto' or 'torch'.")
    if reason is not None or len(poses) == 0:
        return route_by_formula(inputs, fields, parents, places, iterations)
    assert windows is not None
    routed = EMRouted(*EMRouting.apply(*inputs, fields, parents, places, iterations, windows))
    if iterations > 1:
        return routed
    share = 1 / parents[fields].to(poses.dtype)  # L K: no fit has changed the couplings
    return routed._replace(couplings=share.unsqueeze(-1).expand(len(poses), -1, -1, weight.shape[1]))


def route_by_formula(
    inputs: tuple[Tensor, ...], fields: Tensor, parents: Tensor, places: Tensor | None, iterations: int
) -> EMRouted:
    poses, activations, weight, beta_v, beta_a = inputs
    votes = votes_of(poses, weight, fields, places)
    return em_route(votes, activations, fields, beta_v, beta_a, iterations=iterations, parents=parents)


def why_no_em_kernels(weight: Tensor, windows: Windows | None) -> str | None:
    """Why the Triton kernels can't route by a weight (k, J, 4, 4) where it lies; None where they can."""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed: pip install triton"
    if not weight.is_cuda and os.environ.get("TRITON_INTERPRET") != "1":
        return f"they need a CUDA device, and the tensors are on {weight.device.type}"
    if windows is None:
        return "they need windows over a grid, and only an index was given"
    from gammacaps.ops.em.kernels.launch import MOST_PLACES, MOST_TYPES

    if weight.shape[1] > MOST_TYPES:
        return f"they take at most {MOST_TYPES} types of parents, not {weight.shape[1]}"
    if max(windows.K, windows.L) > MOST_PLACES:
        return f"they take at most {MOST_PLACES} children in a window, and as many positions"
    return None


class EMRouting(torch.autograd.Function):
    """The kernels within autograd: poses (B L J 16), activations (B L J) and couplings (B L K J).

    With one iteration the couplings are nobody's: they are empty.
    """

    @staticmethod
    def forward(
        ctx: Any,
        poses: Tensor,
        activations: Tensor,
        weight: Tensor,
        beta_v: Tensor,
        beta_a: Tensor,
        fields: Tensor,
        parents: Tensor,
        places: Tensor | None,
        iterations: int,
        windows: Windows,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from gammacaps.ops.em.kernels import launch

        shares = parents.reciprocal()
        weights = weight.contiguous(), beta_v.contiguous(), beta_a.contiguous()
        layer = launch.Layer(*weights, shares, places, windows, iterations)
        if poses.is_cuda:  # Triton's interpreter compiles nothing
            learns = ctx.needs_input_grad[2] if any(ctx.needs_input_grad) else None
            (ROWS, J), kind = weight.shape[:2], None if places is None else places.dtype
            launch.warm_up(J, ROWS, windows, iterations, kind, len(poses), learns)
        kept = launch.forward(poses.contiguous(), activations.contiguous(), layer)
        couplings = kept.couplings[-1] if iterations > 1 else kept.couplings.flatten()
        ctx.save_for_backward(poses, activations, weight, beta_v, beta_a, fields, parents, places, shares, *kept)
        ctx.iterations, ctx.windows = iterations, windows
        ctx.set_materialize_grads(False)
        if iterations == 1:
            ctx.mark_non_differentiable(couplings)
        # Copies are small beside what is kept, and may be changed by whoever gets them.
        return kept.mean[-1].clone(), kept.active[-1].clone(), couplings

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        from gammacaps.ops.em.kernels import launch

        *inputs, fields, parents, places, shares = ctx.saved_tensors[:9]
        nothing = (None,) * 5
        if all(grad is None for grad in grads):
            return *nothing, *nothing
        if torch.is_grad_enabled() or transformed(*grads):  # the gradient is to be differentiated, or one of many
            return *differentiable_gradient(inputs, fields, parents, places, ctx.iterations, grads), *nothing
        poses, activations, weight, beta_v, beta_a = (t.contiguous() for t in inputs)
        layer = launch.Layer(weight, beta_v, beta_a, shares, places, ctx.windows, ctx.iterations)
        wanted = launch.Wanted(ctx.needs_input_grad[2], any(ctx.needs_input_grad[3:5]))
        at_poses, at_active, at_couplings = (None if grad is None else grad.contiguous() for grad in grads)
        kept = launch.Kept(*ctx.saved_tensors[9:])
        found = launch.backward(poses, activations, layer, kept, at_poses, at_active, at_couplings, wanted)
        needed = zip(found, ctx.needs_input_grad[:5], strict=True)
        return *(gradient if need else None for gradient, need in needed), *nothing


def differentiable_gradient(
    inputs: Sequence[Tensor],
    fields: Tensor,
    parents: Tensor,
    places: Tensor | None,
    iterations: int,
    grads: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """The same gradient through autograd over the formula: for whoever asks for a gradient of the gradient."""
    with torch.enable_grad():
        outs = route_by_formula(tuple(inputs), fields, parents, places, iterations)
    pairs = [(out, grad) for out, grad in zip(outs, grads, strict=True) if grad is not None]
    wanted = [t for t in inputs if t.requires_grad]
    found = torch.autograd.grad(
        [out for out, _ in pairs],
        wanted,
        [grad for _, grad in pairs],
        create_graph=torch.is_grad_enabled(),
        allow_unused=True,
    )
    gradients = iter(found)
    return [next(gradients) if t.requires_grad else None for t in inputs]
