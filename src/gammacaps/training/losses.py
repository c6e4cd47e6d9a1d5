"""What training minimises: the margin, spread, cross-entropy and reconstruction losses."""

import functools
import math
from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot, relu

from gammacaps.attacks.losses import ce_log
from gammacaps.errors import check_choice


def margin_loss(lengths: Float[Tensor, "B N"], labels: Int[Tensor, "B"], smoothing: float = 0.0) -> Float[Tensor, ""]:
    """The true class's capsule longer than 0.9, the others' shorter than 0.1, these weighed by 0.5 (Sabour, eq. 4).

    Smoothing moves these two toward their mean over the classes, by that share of the way.
    """
    true = one_hot(labels, lengths.shape[1]).to(lengths.dtype)  # B N
    nearer = 0.8 * smoothing / lengths.shape[1]
    present = true * relu(0.9 - 0.8 * smoothing + nearer - lengths).square()
    absent = 0.5 * (1 - true) * relu(lengths - (0.1 + nearer)).square()
    return (present + absent).sum(dim=-1).mean()


def spread_loss(
    activations: Float[Tensor, "B N"], labels: Int[Tensor, "B"], margin: float | Tensor
) -> Float[Tensor, ""]:
    """The true class's activation above each other's by the margin (Hinton et al. 2018, eq. 3)."""
    true = activations.gather(1, labels.unsqueeze(-1))  # B 1
    short = relu(margin - (true - activations)).square()  # B N; at the true class it is margin^2
    return (short.sum(dim=-1) - margin**2).mean()


def spread_margin(step: int) -> float:
    """The spread loss's margin, from 0.2 to 0.99 as training goes on (Gritzman 2019)."""
    return 0.2 + 0.79 / (1 + math.exp(-min(10.0, step / 50_000 - 4)))


def classification_loss(
    name: str, scores: Float[Tensor, "B N"], labels: Int[Tensor, "B"], margin: float | Tensor, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The loss that a network's `loss` attribute names, or that was chosen in its place; `margin` is the spread's.

    With `smoothing` an image counts by that share as of every class alike. Of losses without probabilities it takes
    that share off the distance that they ask for between the true class and the others.
    """
    if name == "margin":
        return margin_loss(scores, labels, smoothing)
    if name == "spread":
        return spread_loss(scores, labels, (1 - smoothing) * margin)
    check_choice("loss", name, ("margin", "spread", "ce-log", "cross-entropy"))
    loss = ce_log(scores, labels).mean() if name == "ce-log" else cross_entropy(scores, labels)
    if not smoothing:
        return loss
    return (1 - smoothing) * loss - smoothing * log_probabilities(name, scores).mean()


def reconstruction_loss(reconstructed: Float[Tensor, "B C H W"], images: Float[Tensor, "B C H W"]) -> Float[Tensor, ""]:
    """The squared difference summed over an image's pixels, mean over the batch."""
    return (reconstructed - images).square().flatten(1).sum(dim=-1).mean()


def divergence(name: str, clean: Float[Tensor, "B N"], attacked: Float[Tensor, "B N"]) -> Float[Tensor, "B"]:
    """KL from the attacked to the clean class probabilities (TRADES), for a network whose loss is `name`."""
    log_p, log_q = log_probabilities(name, clean), log_probabilities(name, attacked)
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)


@functools.cache
def divergence_of(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The divergence of networks with one loss: always the same function, by which an attack knows its recording."""
    return functools.partial(divergence, name)


def log_probabilities(name: str, scores: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    """Logits through a softmax; lengths as shares of their sum, since a softmax of bounded lengths is nearly flat."""
    if name == "cross-entropy":
        return scores.log_softmax(dim=-1)
    safe = scores.clamp_min(1e-6)
    return safe.log() - safe.sum(dim=-1, keepdim=True).log()
