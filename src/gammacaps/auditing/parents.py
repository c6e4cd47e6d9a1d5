"""Definition 3.5: does every active capsule choose a single parent?"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.metrics import TScore


class ParentCounter:
    """Adds up, batch by batch, how the active capsules of one layer couple with the layer above."""

    def __init__(self, tau: float, device: torch.device) -> None:
        self.tau, self.T = tau, TScore().to(device)
        self.active = self.single = 0
        self.margin = 0.0

    def update(
        self, activations: Float[Tensor, "B I"], couplings: Float[Tensor, "B I J"], parents: Tensor | None
    ) -> None:
        """`parents` (I) says how many of the J each capsule can reach; None where it is all of them."""
        self.T.update(couplings, parents)
        active = activations > self.tau
        if parents is not None:
            active = active & (parents > 1)  # who reaches one or none chooses nothing
        first, second = couplings[active].topk(2, dim=1).values.double().unbind(1)
        self.active += len(first)
        self.single += int((first > 0.5).sum())  # outweighs all others together, so there can be but one
        self.margin += (first - second).sum().item()

    def compute(self) -> dict[str, Any]:
        """T, the share of active capsules with a single parent, and the mean margin of the first parent."""
        count = self.active
        return {
            "T": self.T.compute().item(),
            "active": count,
            "single_parent": self.single / count if count else None,
            "margin": self.margin / count if count else None,
        }
