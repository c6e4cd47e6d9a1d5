"""Routing with its gradient written out: the plain backend, on any device.

Autograd over `reference.py` keeps and re-reads the votes many times. Written out, the whole gradient with
respect to the votes u_ij is one weighted sum over the iterations k,

    sum_k c^k_ij gs^k_j  +  sum_k a^k_ij (u_ij - v^k_j)        (SDA; for RBA the second term is G^k_ij v^k_j)

where gs^k is the gradient at s^k, a^k the gradient at the distance divided by the distance, and G^k the
gradient at the logits b. So the votes are stored once, and the sum is one matrix product.

Inside this file the votes lie in memory as B J I D, so that every sum over lower capsules is a matrix
product over contiguous memory.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.ops import reference
from gammacaps.ops.reference import TINY, length, scale, squash


@dataclass(frozen=True)
class Rule:
    """What is fixed about a routing: "sda" or "rba", iterations, and what SDA's mean distance runs over."""

    name: str
    iterations: int
    scale_over: str


def distances(u: Float[Tensor, "B J I D"], v: Float[Tensor, "B J D"]) -> Float[Tensor, "B J I"]:
    """|u_ij - v_j|, never through |u|^2 - 2uv + |v|^2, which loses half the digits of a small distance."""
    if u.is_cuda:
        return length(u - v.unsqueeze(2))
    # On a CPU cdist reads the votes once and writes no difference.
    return torch.cdist(u, v.unsqueeze(2), compute_mode="donot_use_mm_for_euclid_dist").squeeze(-1)


def lengths(raw: Float[Tensor, "I B J D"]) -> Float[Tensor, "I B J"]:
    """The votes' lengths: on a CPU the distance from zero is twice as fast as a norm over so short an axis."""
    return length(raw) if raw.is_cuda else distances(raw, raw.new_zeros(*raw.shape[:2], raw.shape[3]))


def over_children(c: Float[Tensor, "B J I"], u: Float[Tensor, "B J I D"]) -> Float[Tensor, "B J D"]:
    """sum_i c_ij u_ij."""
    return (c.unsqueeze(2) @ u).squeeze(2)


def over_entries(u: Float[Tensor, "B J I D"], v: Float[Tensor, "B J D"]) -> Float[Tensor, "B J I"]:
    """The dot product of each vote with its parent's vector."""
    return (u @ v.unsqueeze(3)).squeeze(3)


def usual_distance(distance: Float[Tensor, "B J I"], rule: Rule) -> Tensor:
    """d_o: the mean over the parents of each lower capsule (the paper), or over the whole batch."""
    mean = distance.mean(dim=1, keepdim=True) if rule.scale_over == "capsule" else distance.mean()
    return mean.clamp_min(TINY)


def squash_gradient(s: Float[Tensor, "B J D"], grad: Float[Tensor, "B J D"]) -> Float[Tensor, "B J D"]:
    """The gradient at s of squash(s) = s n / (1 + n^2), n = |s|."""
    norm = length(s).unsqueeze(-1)
    along = (s * grad).sum(-1, keepdim=True) / norm.clamp_min(TINY)
    denominator = 1 + norm * norm
    return grad * (norm / denominator) + s * (along * (1 - norm * norm) / (denominator * denominator))


def softmax_gradient(c: Float[Tensor, "B J I"], grad: Float[Tensor, "B J I"]) -> Float[Tensor, "B J I"]:
    """The gradient at the logits b of c = softmax over the parents j."""
    weighted = c * grad
    return torch.addcmul(weighted, c, weighted.sum(dim=1, keepdim=True), value=-1)


def distance_gradient(
    distance: Float[Tensor, "B J I"], grad_b: Float[Tensor, "B J I"], rule: Rule
) -> Float[Tensor, "B J I"]:
    """The gradient at the distances of b = scale * distance / usual_distance, divided by the distance."""
    usual = usual_distance(distance, rule)
    weighted = grad_b * (distance / usual)
    mean = weighted.mean(dim=1, keepdim=True) if rule.scale_over == "capsule" else weighted.mean()
    # Where the mean was raised to TINY it is a constant, and so has no gradient.
    mean = mean * (usual > TINY)
    grad = (grad_b - mean) * (scale(distance.shape[1]) / usual)
    # Nearer than this, the direction from parent to vote is rounding error, and dividing would magnify it.
    near = 100 * torch.finfo(distance.dtype).eps
    return torch.where(distance > near, grad / distance.clamp_min(near), 0)


class Routing(torch.autograd.Function):
    """poses (B I d), weight (I J d D), bias (J D) or None -> poses (B J D), couplings (B J I)."""

    @staticmethod
    def forward(ctx: Any, poses: Tensor, weight: Tensor, bias: Tensor | None, rule: Rule) -> tuple[Tensor, Tensor]:
        B, I, _ = poses.shape
        _, J, d, D = weight.shape
        rows = weight.transpose(1, 2).reshape(I, d, J * D)  # a view of weights stored as `RoutedCapsules` stores them
        raw = torch.bmm(poses.transpose(0, 1), rows).view(I, B, J, D)
        u = torch.empty(B, J, I, D, dtype=raw.dtype, device=raw.device)
        ratio = None
        if rule.name == "sda":
            most, size = length(poses).t().unsqueeze(-1), lengths(raw)  # I B 1, I B J
            ratio = torch.where(size > most, most / size.clamp_min(TINY), 1).permute(1, 2, 0).contiguous()  # B J I
            torch.mul(raw.permute(1, 2, 0, 3), ratio.unsqueeze(-1), out=u)
        else:
            u.copy_(raw.permute(1, 2, 0, 3))

        c = u.new_full((B, J, I), 1 / J)
        b = u.new_zeros(()).expand(B, J, I)
        couplings, sums, distance = [c], [], []
        for k in range(rule.iterations):
            s = over_children(c, u)  # B J D
            sums.append(s if bias is None else s + bias)
            v = squash(sums[-1])  # B J D
            if k == rule.iterations - 1:
                break
            if rule.name == "sda":
                distance.append(distances(u, v))  # B J I
                b = distance[-1] * (scale(J) / usual_distance(distance[-1], rule))
            else:
                b = b + over_entries(u, v)
            c = b.softmax(dim=1)
            couplings.append(c)

        ctx.rule = rule
        ctx.save_for_backward(poses, weight, bias, rows, u, ratio, *couplings, *sums, *distance)
        ctx.set_materialize_grads(False)
        return v, c

    @staticmethod
    def backward(
        ctx: Any, grad_v: Tensor | None, grad_c: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        rule, r = ctx.rule, ctx.rule.iterations
        poses, weight, bias, rows, u, ratio, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *differentiable_gradient(poses, weight, bias, rule, grad_v, grad_c), None
        couplings, sums, distance = kept[:r], kept[r : 2 * r], kept[2 * r :]

        size = length(poses).clamp_min(TINY).unsqueeze(1)  # B 1 I
        grad_bias = torch.zeros_like(sums[0])
        grad_b = torch.zeros_like(couplings[0])
        own = torch.zeros_like(couplings[0])  # what multiplies u_ij itself in the sum over iterations
        radial = torch.zeros_like(couplings[0])  # that whole sum's dot product with u_ij, for votes as long as |v_i|
        factors, vectors = [], []  # the rest of the sum: factors (B J I) times vectors (B J D)
        for k in reversed(range(r)):
            if grad_v is None:
                grad_v = torch.zeros_like(sums[k])
            grad_s = squash_gradient(sums[k], grad_v)  # B J D
            grad_bias += grad_s
            grad = over_entries(u, grad_s)  # B J I
            radial.addcmul_(couplings[k], grad)
            factors.append(couplings[k])
            vectors.append(grad_s)
            if k == 0:
                break
            if grad_c is not None:
                grad, grad_c = grad + grad_c, None
            v = squash(sums[k - 1])
            if rule.name == "sda":
                d = distance[k - 1]
                a = distance_gradient(d, softmax_gradient(couplings[k], grad), rule)
                own += a
                # u (u - v) = (|u|^2 - |v|^2 + d^2) / 2, without another look at the votes.
                radial.addcmul_(a, size * size - v.square().sum(-1, keepdim=True) + d * d, value=0.5)
                factors.append(-a)
                grad_v = v * a.sum(dim=-1, keepdim=True) - over_children(a, u)
            else:
                grad_b = grad_b + softmax_gradient(couplings[k], grad)
                factors.append(grad_b)
                grad_v = over_children(grad_b, u)
            vectors.append(v)

        factor, vector = torch.stack(factors, dim=2), torch.stack(vectors, dim=2)  # B J k I, B J k D
        B, J, I, D = u.shape
        grad_raw = torch.empty(I, B, J, D, dtype=u.dtype, device=u.device)
        by_vote = grad_raw.permute(1, 2, 0, 3)  # B J I D
        if ratio is not None:
            # Where a vote was shortened, its length is the capsule's: what points along it moves the capsule.
            along = torch.where(ratio < 1, radial / size, 0)  # B J I
            rest = factor.mul_(ratio.unsqueeze(2)).transpose(2, 3) @ vector  # B J I D
            torch.addcmul(rest, u, ((own - along / size) * ratio).unsqueeze(-1), out=by_vote)
            grad_poses = poses * (along.sum(dim=1, keepdim=True) / size).transpose(1, 2)
        else:
            by_vote.copy_(factor.transpose(2, 3) @ vector)
            grad_poses = torch.zeros_like(poses)
        grad_rows = grad_raw.view(I, B, J * D)
        grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_weight = torch.bmm(poses.permute(1, 2, 0), grad_rows).view(I, -1, J, D).transpose(1, 2)
        if ctx.needs_input_grad[0]:
            grad_poses += torch.bmm(grad_rows, rows.transpose(1, 2)).transpose(0, 1)
        return grad_poses, grad_weight, grad_bias.sum(0) if bias is not None else None, None


def differentiable_gradient(
    poses: Tensor, weight: Tensor, bias: Tensor | None, rule: Rule, grad_v: Tensor | None, grad_c: Tensor | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The same gradient through autograd over the reference, for whoever asks for a gradient of the gradient."""
    if rule.name == "sda":
        v, c = reference.sda(poses, weight, bias, rule.iterations, rule.scale_over)
    else:
        v, c = reference.rba(poses, weight, bias, rule.iterations)
    pairs = [(out, grad) for out, grad in ((v, grad_v), (c.transpose(1, 2), grad_c)) if grad is not None]
    outs, grads = [out for out, _ in pairs], [grad for _, grad in pairs]
    wanted = [t for t in (poses, weight, bias) if t is not None and t.requires_grad]
    found = iter(torch.autograd.grad(outs, wanted, grads, create_graph=True, allow_unused=True))
    by_input = [next(found) if t is not None and t.requires_grad else None for t in (poses, weight, bias)]
    return by_input[0], by_input[1], by_input[2]
