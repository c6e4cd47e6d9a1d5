"""Matrix capsules: a 4x4 pose and an activation each, routed by EM (Gritzman, 2019)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.nn.vector import wide
from gammacaps.ops.em import parents_of, receptive_fields
from gammacaps.ops.em.route import vote_and_route, why_no_em_kernels
from gammacaps.ops.em.windows import Windows
from gammacaps.ops.routing.choice import plain_wanted


class MatrixLayer(NamedTuple):
    """A layer of matrix capsules; capsule (row, column, type) has the index (row * columns + column) * types + type."""

    poses: Tensor  # B n 16
    activations: Tensor  # B n
    couplings: Tensor | None = None  # B children n, zero where a child can't reach a parent


class MatrixPrimary(nn.Module):
    """1x1 convolutions to the poses and activations of `types` capsules at each place."""

    def __init__(self, channels: int, types: int) -> None:
        super().__init__()
        self.poses = nn.Conv2d(channels, types * 16, 1)
        self.activations = nn.Conv2d(channels, types, 1)

    def forward(self, features: Float[Tensor, "B C H W"]) -> MatrixLayer:
        poses = self.poses(features).permute(0, 2, 3, 1).flatten(1).unflatten(1, (-1, 16))
        activations = self.activations(features).permute(0, 2, 3, 1).flatten(1).sigmoid()
        return MatrixLayer(wide(poses), wide(activations))


def places(height: int, width: int, types: int) -> Float[Tensor, "n 16"]:
    """Each child's column and row, scaled to [0, 1], at the top of the pose's right-hand column."""
    entries = torch.zeros(height, width, 16, dtype=torch.float64)
    entries[..., 3] = (torch.arange(width).to(entries) + 0.5) / width
    entries[..., 7] = ((torch.arange(height).to(entries) + 0.5) / height).unsqueeze(-1)
    return entries.flatten(0, 1).repeat_interleave(types, dim=0)


class MatrixCapsules(nn.Module):
    """Capsules routed by EM from kernel x kernel windows of the layer below.

    With `kernel=None` the window is the whole layer: class capsules, whose transformation matrices are shared over
    the places of the layer below and whose votes have the place added to them (coordinate addition).
    """

    fields: Tensor  # L K: which child stands where in the window of each position
    parents: Tensor  # n: how many parents each child has
    places: Tensor  # n 16: what coordinate addition adds to each child's votes

    def __init__(
        self,
        grid: tuple[int, int],
        lower_types: int,
        types: int,
        *,
        kernel: int | None,
        stride: int = 1,
        iterations: int = 3,
    ) -> None:
        super().__init__()
        height, width = grid
        if kernel is not None and min(grid) < kernel:
            raise InputError(
                f"A grid of {height}x{width} capsules is smaller than the {kernel}x{kernel} window above it: "
                "use larger images."
            )
        self.vote_and_route = vote_and_route  # replaced by its compiled self where that is wanted
        self.types, self.iterations = types, iterations
        self.windows = Windows.over(height, width, lower_types, kernel, stride)
        self.grid, self.shared, count = self.windows.grid, kernel is None, self.windows.children
        if torch.get_default_device().type == "meta":  # only shapes are asked for, and torch works slowly for them
            fields = torch.empty(self.windows.L, self.windows.K, dtype=torch.int64)
            parents, at = torch.empty(count, dtype=torch.int64), torch.empty(count, 16, dtype=torch.float64)
        else:
            one = torch.arange(count).unsqueeze(0)  # 1 K
            fields = one if kernel is None else receptive_fields(height, width, lower_types, kernel, stride)  # L K
            parents, at = parents_of(fields, count, types), places(height, width, lower_types)
        self.register_buffer("fields", fields, persistent=False)
        self.register_buffer("parents", parents, persistent=False)
        self.register_buffer("places", at, persistent=False)
        self.weight = nn.Parameter(torch.empty(lower_types * (1 if kernel is None else kernel**2), types, 4, 4))
        nn.init.trunc_normal_(self.weight, std=1.0, a=-2.0, b=2.0)
        self.beta_v = nn.Parameter(torch.empty(types))
        limit = (6 / (2 * types)) ** 0.5  # Xavier, for a vector with fan-in and fan-out of `types`
        nn.init.uniform_(self.beta_v, -limit, limit)
        self.beta_a = nn.Parameter(torch.empty(types))
        nn.init.trunc_normal_(self.beta_a, mean=-1000.0, std=500.0, a=-2000.0, b=0.0)

    @property
    def has_kernels(self) -> bool:
        """Whether kernels route where the layer lies."""
        weight = self.weight
        if not weight.is_cuda or weight.dtype != torch.float32 or plain_wanted():
            return False
        return why_no_em_kernels(weight, self.windows) is None

    def forward(self, below: MatrixLayer, couplings: bool = False) -> MatrixLayer:
        routed = self.vote_and_route(
            below.poses,
            below.activations,
            self.weight,
            self.beta_v,
            self.beta_a,
            self.fields,
            self.parents,
            self.places if self.shared else None,
            self.iterations,
            self.windows,
        )
        dense = self.dense(routed.couplings, below.activations.shape[1]) if couplings else None
        return MatrixLayer(routed.poses.flatten(1, 2), routed.activations.flatten(1), dense)

    def dense(self, R: Float[Tensor, "B L K J"], count: int) -> Float[Tensor, "B n m"]:
        """The couplings as a children x parents matrix, zero where a child can't reach a parent."""
        B, L, _, J = R.shape
        dense = R.new_zeros(B, count, L, J)
        position = torch.arange(L, device=R.device).unsqueeze(-1)  # L 1
        dense[:, self.fields, position] = R
        return dense.flatten(2)
