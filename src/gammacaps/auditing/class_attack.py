"""The usual attack on the network's answer, PGD on the margin: images that audits start from, and test patterns on."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gammacaps.attacks import pgd
from gammacaps.models import CapsuleModel

STEPS = 40
STEP = 0.1  # of eps


class ClassAttack:
    """The images of an audit under attack, made once for each radius."""

    def __init__(
        self, model: CapsuleModel, images: Float[Tensor, "M C H W"], labels: Int[Tensor, "M"], batch: int, seed: int
    ) -> None:
        self.model, self.images, self.labels = model, images, labels
        self.batch, self.seed = batch, seed
        self.made: dict[float, Tensor] = {}

    def at(self, eps: float) -> Float[Tensor, "M C H W"]:
        """Within eps of the images, where the network errs, as far as it could be made to."""
        if eps not in self.made:
            generator = torch.Generator(self.images.device).manual_seed(self.seed)
            parts = zip(self.images.split(self.batch), self.labels.split(self.batch), strict=True)
            made = [pgd(self.model, x, y, eps=eps, step=STEP * eps, steps=STEPS, generator=generator) for x, y in parts]
            self.made[eps] = torch.cat(made)
        return self.made[eps]
