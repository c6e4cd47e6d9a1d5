"""What a network says of images: its answers, how sure it is of them, and which hidden capsules are on."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gammacaps.auditing.patterns import fit
from gammacaps.data import StoredImages
from gammacaps.models import Model, has_capsules

TAU = 0.5  # a capsule is on if it is longer


@dataclass(frozen=True, eq=False)
class Said:
    """Of M images; on the CPU."""

    answers: Tensor  # M
    sure: Tensor  # M, the longest class capsule; of logits the largest probability
    pattern: Tensor | None  # M I, which hidden capsules are on; None where there are none

    def joined(self, other: "Said") -> "Said":
        pattern = None
        if self.pattern is not None and other.pattern is not None:
            pattern = torch.cat((self.pattern, other.pattern))
        return Said(torch.cat((self.answers, other.answers)), torch.cat((self.sure, other.sure)), pattern)


@torch.no_grad()
def said(model: Model, images: Tensor | StoredImages, batch: int, device: torch.device) -> Said:
    """What the network says of the images, batch by batch."""
    parts = [_said(model, images[start : start + batch].to(device)) for start in range(0, len(images), batch)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.joined(part)
    return whole


def _said(model: Model, images: Tensor) -> Said:
    pattern = None
    if has_capsules(model):
        parse = model.parse(images, couplings=False)
        scores, hidden = parse.scores, parse.activations[1:-1]
        if hidden:
            pattern = (torch.cat([layer.flatten(1) for layer in hidden], dim=1) > TAU).cpu()
    else:
        scores = model(images)
    sure = model.probabilities(scores).amax(dim=1).float().clamp(0, 1)
    return Said(scores.argmax(dim=1).cpu(), sure.cpu(), pattern)


class KnownPatterns:
    """The patterns of hidden capsules that go with each class, learned from training images by naive Bayes."""

    def __init__(self, pattern: Tensor, labels: Tensor, classes: int) -> None:
        self.on, self.off, _ = fit(pattern, labels.cpu(), classes)

    def familiar(self, pattern: Tensor) -> Tensor:
        """How probable each pattern (M, I) is, as a logarithm, in the class that it fits best: (M,)."""
        seen = pattern.to(self.on)
        return (seen @ self.on.T + (1 - seen) @ self.off.T).amax(dim=1)
