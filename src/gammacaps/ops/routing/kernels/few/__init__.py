"""Routing where all upper capsules fit in a tile, as Triton kernels: votes are computed anew wherever they are needed.

Each iteration of routing needs a sum over all lower capsules, so it is a kernel of its own: its programs each take some
samples and some lower capsules, keep the sums in registers and leave them as partial sums, which a small kernel adds up
and squashes. Votes never reach memory. What routing found for each pair of capsules (couplings and distances, one
number each) does, where a gradient will be asked for: reading it again is faster than another look at the votes.

Inside, tensors are arranged so that neighbouring threads read neighbouring memory, and filled up with zeros, so that no
load needs a mask: B to Bp samples, J to Jp upper capsules, D to Dh groups of 4 entries.

    poses   I d Bp            weight    I d Dh Jp 4
    lengths I Bp              sums, pulls, gradients at the parents    Bp Dh Jp 4
    links   I Bp Jp           (a number for each pair of capsules)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from gammacaps.ops.routing.kernels.few.kernels import (
    add_up,
    add_up_gradient,
    arrange_poses_kernel,
    arrange_weight_kernel,
    gather,
    gather_gradient,
    spread_gradient,
)
from gammacaps.ops.routing.rules import is_sda, scale

WARPS = 4


class Share(NamedTuple):
    """Registers for each thread of a program, and how many programs of 4 warps a multiprocessor then has room for."""

    registers: int
    side_by_side: int


# What was fastest on an H200; with fewer registers the gradient's kernel would have to keep some of its own in memory.
FORWARD, GRADIENT, SPREAD, LEARN = Share(168, 3), Share(255, 2), Share(168, 3), Share(255, 2)
# The gradient's last kernel keeps the weights of a lower capsule in registers, so many to a thread.
WEIGHTS_A_THREAD = 128


def fits(J: int, d: int, D: int) -> bool:
    """Whether these kernels can route to J upper capsules of size D from lower ones of size d."""
    Jp, dp, Dp = (triton.next_power_of_2(n) for n in (J, d, max(4, D)))
    return dp * Dp * max(1, Jp // 32) <= WEIGHTS_A_THREAD and Jp <= 128


class Kept(NamedTuple):
    """What the gradient of routing needs beside the weights, arranged as at the top of this file."""

    poses: Tensor  # I d Bp
    lengths: Tensor  # I Bp
    sums: Tensor  # iterations Bp Dh Jp 4: s with the bias
    pulls: Tensor  # iterations-1 Bp Dh Jp 4: what pulled the votes in each iteration but the first
    couplings: Tensor  # iterations-1 I Bp Jp
    distances: Tensor  # iterations-1 I Bp Jp; for RBA empty


class TiledLayer:
    """A layer's shapes, how it is cut into tiles, and how its kernels are launched."""

    def __init__(self, B: int, shape: Sequence[int], rule: str, device: torch.device) -> None:
        """For B samples and weights of a shape (I, J, d, D)."""
        I, J, d, D = shape
        self.B, self.I, self.J, self.d, self.D, self.device = B, I, J, d, D, device
        self.sda = is_sda(rule)
        self.Jp, self.dp, self.Dh = (triton.next_power_of_2(n) for n in (J, d, -(-D // 4)))
        # Lanes that upper capsules leave free go to samples. A thread has 32 entries of votes: with sums, parents and
        # weights that is about what it has registers for.
        self.G = WARPS * max(1, 32 // self.Jp)
        most = max(1, 32 // (self.Dh * 4 * max(1, self.Jp // 32)))
        self.R = min(most, triton.next_power_of_2(triton.cdiv(B, self.G)))
        self.groups = triton.cdiv(B, self.G * self.R)
        self.Bp = self.groups * self.G * self.R
        self.tile: dict[str, Any] = {"J": J, "Jp": self.Jp, "Dh": self.Dh}

    def new(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=self.device)

    def vectors(self, *leading: int) -> Tensor:
        """Memory for vectors of all parents; zeros where samples that fill up a tile would keep whatever was there."""
        make = torch.zeros if self.Bp > self.B else torch.empty
        return make((*leading, self.Bp, self.Dh, self.Jp, 4), dtype=torch.float32, device=self.device)

    def links(self, count: int) -> Tensor:
        """Memory for a number for each pair of capsules, `count` times."""
        return self.new(count, self.I, self.Bp, self.Jp)

    def arrange_weight(self, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """Weights (I, J, d, D) -> I d Dh Jp 4."""
        out = self.new(self.I, self.d, self.Dh, self.Jp, 4) if out is None else out
        si, sj, sd, se = weight.stride()
        arrange_weight_kernel[self.I * self.d,](
            weight, out, si=si, sj=sj, sd=sd, se=se, d=self.d, D=self.D, num_warps=2, **self.tile
        )
        return out

    def arrange_poses(self, poses: Tensor) -> tuple[Tensor, Tensor]:
        """Poses (B, I, d) -> I d Bp, and their lengths I Bp."""
        out, lengths = self.new(self.I, self.d, self.Bp), self.new(self.I, self.Bp)
        rows, columns = 8, 16
        arrange_poses_kernel[triton.cdiv(self.I, rows), triton.cdiv(self.Bp, columns)](
            poses, out, lengths, self.B, self.I, self.Bp, d=self.d, dp=self.dp, ROWS=rows, COLUMNS=columns
        )
        return out, lengths

    def children(self, share: Share) -> int:
        """How many lower capsules each program takes, so that all programs run at once."""
        return triton.cdiv(self.I, max(1, multiprocessors(self.device) * share.side_by_side // self.groups))

    def parts(self, share: Share) -> int:
        """How many programs share the lower capsules, each with a partial sum."""
        return triton.cdiv(self.I, self.children(share))

    def gather(self, kernel: Any, share: Share, *arguments: Any, **constants: Any) -> None:
        """A kernel that sums over lower capsules for G x R samples a program."""
        kernel[self.groups, self.parts(share)](
            *arguments, 1, scale(self.J), self.children(share), SDA=self.sda, d=self.d, G=self.G, R=self.R,
            num_warps=WARPS, maxnreg=share.registers, **self.tile, **constants,
        )  # fmt: skip

    def add_up(self, kernel: Any, parts: int, *tensors: Tensor | None, **constants: Any) -> None:
        """A kernel in which each program takes some upper capsules of one sample."""
        Jt = min(self.Jp, max(1, 64 // self.Dh))
        kernel[self.B, self.Jp // Jt](
            *tensors, parts, self.Bp, D=self.D, ROWS=8, Jt=Jt, num_warps=4, **self.tile, **constants
        )

    def forward(
        self, poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int, keep: bool
    ) -> tuple[Tensor, Kept]:
        """Routes poses (B, I, d) by arranged weights to poses (B, J, D); `keep` for a gradient, or the couplings."""
        p, lengths = self.arrange_poses(poses)
        parts = self.parts(FORWARD)
        v, partial = self.new(self.B, self.J, self.D), self.vectors(parts)
        sums, pulls = self.vectors(iterations), self.vectors(iterations - 1)
        couplings = self.links(iterations - 1 if keep else 0)
        distances = self.links(iterations - 1 if keep and self.sda else 0)
        for k in range(iterations):
            kept = [links[k - 1] if k and len(links) else None for links in (couplings, distances)]
            self.gather(
                gather, FORWARD, p, lengths, weight, pulls[k - 1] if k else None, *kept, partial, self.I, self.Bp,
                FIRST=k == 0, KEEP=keep,
            )  # fmt: skip
            last = k == iterations - 1
            self.add_up(
                add_up, parts, partial, bias, sums[k], None if last else pulls[k], pulls[k - 1] if k else None, v,
                SDA=self.sda, BIAS=bias is not None, FIRST=k == 0, LAST=last,
            )  # fmt: skip
        return v, Kept(p, lengths, sums, pulls, couplings, distances)

    def backward(
        self,
        kept: Kept,
        weight: Tensor,
        grad_v: Tensor | None,
        grad_c: Tensor | None,
        want_poses: bool,
        want_weight: bool,
        slopes: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """Gradients of poses (B, I, d) and weight (I, J, d, D), and of all sums s, arranged; weights are arranged too.

        `slopes` is memory for them; it may be that of the kept distances, which are then lost.
        """
        iterations, sda = len(kept.sums), self.sda
        parts = self.parts(GRADIENT)
        partial, grads = self.vectors(parts), self.vectors(iterations)
        slopes = torch.empty_like(kept.couplings) if slopes is None else slopes
        so_far = None if sda else torch.zeros_like(kept.sums[0])
        if grad_v is None:
            grads[-1].zero_()
        else:
            self.add_up(
                add_up_gradient, 0, None, grad_v.contiguous(), kept.sums[-1], None, grads[-1], LAST=True, CARRY=False
            )
        for k in range(iterations - 1, 0, -1):
            last = k == iterations - 1
            self.gather(
                gather_gradient, GRADIENT, kept.poses, kept.lengths, weight, kept.pulls[k - 1], grads[k],
                kept.couplings[k - 1], kept.distances[k - 1] if sda else None, slopes[k - 1], grad_c if last else None,
                partial, self.I, self.Bp, self.B, ALSO_C=last and grad_c is not None,
            )  # fmt: skip
            self.add_up(
                add_up_gradient, parts, partial, None, kept.sums[k - 1], so_far, grads[k - 1], LAST=False, CARRY=not sda
            )
        return *self.spread(kept, weight, grads, slopes, want_poses, want_weight), grads

    def spread(
        self, kept: Kept, weight: Tensor, grads: Tensor, slopes: Tensor, want_poses: bool, want_weight: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """The last kernel of the gradient."""
        tiles = triton.cdiv(self.I, self.G)
        share = LEARN if want_weight else SPREAD
        samples = share_samples(self.B, tiles, multiprocessors(self.device) * share.side_by_side)
        splits = triton.cdiv(self.B, samples)
        grad_poses = self.new(self.B, self.I, self.d) if want_poses else None
        learned = self.new(splits, self.I, self.d, self.J, self.D) if want_weight else None
        if want_poses or want_weight:
            spread_gradient[tiles, splits](
                kept.poses, kept.lengths, weight, kept.pulls, grads, kept.couplings, slopes, grad_poses, learned,
                self.I, self.Bp, self.B, 1, samples, SDA=self.sda, ITERATIONS=len(grads), POSES=want_poses,
                WEIGHT=want_weight, d=self.d, D=self.D, G=self.G, dp=self.dp, num_warps=WARPS,
                maxnreg=share.registers, **self.tile,
            )  # fmt: skip
        if learned is None:
            return grad_poses, None
        return grad_poses, (learned[0] if splits == 1 else learned.sum(0)).transpose(1, 2)

    def plain_couplings(self, kept: Kept) -> Tensor:
        """The last iteration's couplings as (B, I, J)."""
        if len(kept.couplings) == 0:
            return torch.full((self.B, self.I, self.J), 1 / self.J, device=self.device)
        return kept.couplings[-1, :, : self.B, : self.J].transpose(0, 1).contiguous()

    def plain_vectors(self, vectors: Tensor) -> Tensor:
        """Vectors Dh Jp 4 as (J, D)."""
        return vectors.transpose(0, 1).flatten(1)[: self.J, : self.D]


def multiprocessors(device: torch.device) -> int:
    """How many programs or so run at once; some small number under the interpreter."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def share_samples(B: int, tiles: int, at_once: int) -> int:
    """How many samples each program walks over, so that the last ones to start do not leave the others waiting."""

    def time(samples: int) -> float:
        rounds = triton.cdiv(tiles * triton.cdiv(B, samples), at_once)
        return rounds * (samples + 2)  # each program first loads its weights, about the time of two samples

    return min({triton.cdiv(B, n) for n in range(1, min(B, 16) + 1)}, key=time)
