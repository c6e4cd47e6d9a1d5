"""Routing with its gradient written out: the plain backend, on any device.

Autograd over the formulas of `rules.py` keeps and re-reads the votes many times. Written out, the whole gradient with
respect to the votes u_ij is one weighted sum over the iterations k,

    sum_k c^k_ij gs^k_j  +  sum_k a^k_ij (u_ij - v^k_j)        (SDA; for RBA the second term is G^k_ij v^k_j)

where gs^k is the gradient at s^k, a^k the gradient at the distance divided by the distance, and G^k the
gradient at the logits b. So the votes are stored once, and the sum is one matrix product.

Inside this file the votes lie in memory as B J D I: every sum over lower capsules or over entries is then a matrix
product, and all else runs along I, however short a vote is.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import mse_loss

from gammacaps.ops.routing.backend import Gradients, Settings, Wanted
from gammacaps.ops.routing.rules import is_sda, scale
from gammacaps.ops.vectors import TINY, length, squash, squash_gradient


def transposed(matrix: Float[Tensor, "n m"]) -> Float[Tensor, "m n"]:
    """A contiguous transpose."""
    if matrix.is_cuda:
        return matrix.t().contiguous()
    # On a CPU products with the identity, some columns at a time, take a third of a copy's time.
    n, m = matrix.shape
    width = math.gcd(m, 32)
    same = torch.eye(width, dtype=matrix.dtype, device=matrix.device).expand(m // width, width, width)
    return torch.bmm(same, matrix.view(n, -1, width).permute(1, 2, 0)).view(m, n)


def distances(u: Float[Tensor, "B J D I"], v: Float[Tensor, "#B #J #D 1"]) -> Float[Tensor, "B J I"]:
    """|u_ij - v_j|, never through |u|^2 - 2uv + |v|^2, which loses half the digits of a small distance."""
    if u.is_cuda:
        return torch.linalg.vector_norm(u - v, dim=2)
    # On a CPU a norm over any but the last axis is very slow, and a product with ones faster than a sum.
    squares = mse_loss(u, v.expand_as(u), reduction="none")
    return (u.new_ones(1, u.shape[2]).expand(*u.shape[:2], -1, -1) @ squares).squeeze(2).sqrt_()


def over_children(c: Float[Tensor, "B J I"], u: Float[Tensor, "B J D I"]) -> Float[Tensor, "B J D"]:
    """sum_i c_ij u_ij."""
    return (c.unsqueeze(2) @ u.transpose(2, 3)).squeeze(2)


def usual_distance(distance: Float[Tensor, "B J I"], scale_over: str) -> Tensor:
    """d_o: the mean over the parents of each lower capsule (the paper), or over the whole batch."""
    mean = distance.mean(dim=1, keepdim=True) if scale_over == "capsule" else distance.mean()
    return mean.clamp_min(TINY)


def distance_gradient(
    distance: Float[Tensor, "B J I"], grad_b: Float[Tensor, "B J I"], scale_over: str
) -> Float[Tensor, "B J I"]:
    """The gradient at the distances of b = scale * distance / usual_distance, divided by the distance."""
    usual = usual_distance(distance, scale_over)
    weighted = grad_b * distance
    mean = weighted.mean(dim=1, keepdim=True) if scale_over == "capsule" else weighted.mean()
    # Where the mean was raised to TINY it is a constant, and so has no gradient.
    mean = mean / usual * (usual > TINY)
    # Nearer than this, the direction from parent to vote is rounding error, and dividing would magnify it. A quotient
    # by the square needs no mask, which is slow on a CPU: under the limit it falls to 0.
    near = 100 * torch.finfo(distance.dtype).eps
    square = distance.square().clamp_min_(near * near).mul_(usual / scale(distance.shape[1]))
    return weighted.addcmul_(distance, mean, value=-1).div_(square)


class WrittenOut:
    """Routing by SDA or RBA, on any device and in any precision from float32 on."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sda = is_sda(settings.rule.name)

    def arrange(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """I d J D: a view of weights stored as `RoutedCapsules` stores them."""
        return weight.transpose(1, 2).contiguous()

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, *, couplings: bool, keep: bool
    ) -> tuple[Tensor, Tensor, Sequence[Tensor | None]]:
        B, I, _ = poses.shape
        _, _, J, D = weight.shape
        raw = torch.bmm(poses.transpose(0, 1), weight.flatten(2))  # I B JD
        u = transposed(raw.view(I, -1)).view(B, J, D, I)
        most = ratio = None
        if self.sda:
            # Clamped twice, so that a zero vote of a zero pose has the ratio 1. By no maximum(size, most): compiled for
            # a GPU x / x may be just under 1, and the gradient asks which votes were shortened.
            tiny = torch.finfo(u.dtype).tiny
            most = length(poses).clamp_min(2 * tiny).unsqueeze(1)  # B 1 I
            ratio = (most / distances(u, u.new_zeros(1, 1, 1, 1)).clamp_min_(tiny)).clamp_max_(1)  # B J I
            u *= ratio.unsqueeze(2)

        c = u.new_full((B, J, I), 1 / J)
        b = u.new_zeros(()).expand(B, J, I)
        coupled, sums, distance = [c], [], []
        for k in range(self.settings.iterations):
            s = over_children(c, u)  # B J D
            sums.append(s if bias is None else s + bias)
            v = squash(sums[-1])  # B J D
            if k == self.settings.iterations - 1:
                break
            if self.sda:
                distance.append(distances(u, v.unsqueeze(3)))  # B J I
                b = distance[-1] * (scale(J) / usual_distance(distance[-1], self.settings.scale_over))
            else:
                b = b + (v.unsqueeze(2) @ u).squeeze(2)
            c = b.softmax(dim=1)
            coupled.append(c)
        return v, c.transpose(1, 2), (u, most, ratio, *coupled, *sums, *distance)

    def backward(
        self,
        inputs: tuple[Tensor, Tensor, Tensor | None],
        kept: Sequence[Any],
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        wanted: Wanted,
    ) -> Gradients:
        (poses, weight, _), r = inputs, self.settings.iterations  # B I d, I d J D
        u, most, ratio, *kept = kept
        couplings, sums, distance = kept[:r], kept[r : 2 * r], kept[2 * r :]
        B, J, D, I = u.shape

        # The sum over iterations is factors times vectors, 2k for c^k and gs^k, 2k - 1 for the second term of v^(k-1):
        # all but what multiplies u_ij itself, its `own`. What points along u_ij is `radial`.
        factors, vectors = u.new_empty(B, J, 2 * r - 1, I), u.new_empty(B, J, 2 * r - 1, D)
        grad_bias = torch.zeros_like(sums[0])
        own = radial = grad_b = u.new_zeros(())
        for k in reversed(range(r)):
            if grad_v is None:
                grad_v = torch.zeros_like(sums[k])
            c, grad_s = couplings[k], squash_gradient(sums[k], grad_v)  # B J I, B J D
            grad_bias += grad_s
            vectors[:, :, 2 * k] = grad_s
            torch.mul(c, 1 if ratio is None else ratio, out=factors[:, :, 2 * k])
            if k > 0:
                v = squash(sums[k - 1])
                vectors[:, :, 2 * k - 1] = v if ratio is None else -v
            if k == 0 and ratio is None:
                break
            *by_v, grad = (vectors[:, :, max(2 * k - 1, 0) : 2 * k + 1] @ u).unbind(2)  # B J I
            if ratio is not None:
                radial = torch.addcmul(radial, c, grad)
            if k == 0:
                break
            if grad_c is not None:
                grad, grad_c = grad + grad_c.transpose(1, 2), None
            weighted = c * grad
            grad = torch.addcmul(weighted, c, weighted.sum(dim=1, keepdim=True), value=-1)  # at the logits b
            if ratio is not None:
                a = distance_gradient(distance[k - 1], grad, self.settings.scale_over)
                own = own + a
                radial.addcmul_(a, by_v[0])
                torch.mul(a, ratio, out=factors[:, :, 2 * k - 1])
                grad_v = v * a.sum(dim=-1, keepdim=True) - over_children(a, u)
            else:
                grad_b = grad_b + grad
                factors[:, :, 2 * k - 1] = grad_b
                grad_v = over_children(grad_b, u)

        grad_u = vectors.transpose(2, 3) @ factors  # B J D I
        grad_poses = torch.zeros_like(poses)
        if ratio is not None:
            # Where a vote was shortened, its length is the capsule's: what points along it moves the capsule.
            along = (radial / most.clamp_min(TINY).square()).add_(own).mul_((1 - ratio).sign_())  # B J I
            grad_poses = poses * along.sum(dim=1).unsqueeze(-1)
            grad_u.addcmul_(u, (own - along).mul_(ratio).unsqueeze(2))
        grad_rows = transposed(grad_u.view(-1, I)).view(I, B, J * D)
        grad_weight = None
        if wanted.weight:
            grad_weight = torch.bmm(poses.permute(1, 2, 0), grad_rows).view(I, -1, J, D).transpose(1, 2)
        if wanted.poses:
            grad_poses += torch.bmm(grad_rows, weight.flatten(2).transpose(1, 2)).transpose(0, 1)
        return grad_poses, grad_weight, grad_bias.sum(0) if wanted.bias else None
