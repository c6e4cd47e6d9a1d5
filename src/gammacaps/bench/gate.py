"""What figures are held against: answers against exact ones, times against the least that they could be."""

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from gammacaps.models import create
from gammacaps.models.presets import PRESETS
from gammacaps.nn import RoutedCapsules, layers_of

# Relative errors in norm that float32 may leave, of the first output and of gradients.
OUTPUT_LIMIT, GRADIENT_LIMIT = 1e-4, 1e-3
# A way in bfloat16 may err so many times as much as plain PyTorch does in it.
TIMES_PLAIN = 2


def relative_errors(outputs: Sequence[Tensor], exact: Sequence[Tensor], labels: Tensor | None) -> list[float]:
    """|ours - exact| / |exact| of each output; NaN, too, where one that has no exact value is not finite.

    With labels the second output is the gradient of a margin: an image whose best wrong class is another's by rounding
    climbs another slope, and is left out.
    """
    pairs = list(zip(outputs, exact, strict=False))
    if labels is not None and len(pairs) > 1:
        best = [scores.scatter(1, labels.unsqueeze(1), -math.inf).argmax(dim=1) for scores in pairs[0]]  # B
        pairs[1] = outputs[1][best[0] == best[1]], exact[1][best[0] == best[1]]
    errors = [((ours.double() - right).norm() / right.double().norm()).item() for ours, right in pairs]
    return errors + [0.0 if extra.isfinite().all() else math.nan for extra in outputs[len(exact) :]]


def objection(names: Sequence[str], errors: Sequence[float], plain: Sequence[float] | None) -> str | None:
    """What is wrong with a way's answers, or None; `plain` are the errors of plain PyTorch for a way in bfloat16."""
    for place, (name, error) in enumerate(zip(names, errors, strict=True)):
        limit = GRADIENT_LIMIT if place else OUTPUT_LIMIT
        limit = limit if plain is None else max(limit, TIMES_PLAIN * plain[place])
        if not error <= limit:  # written so that NaN fails
            return f"not timed: the relative error of its {name} is {error:.1e} (limit {limit:.1e})"
    return None


@functools.cache
def product_flop(network: str) -> int:
    """Operations of the matrix products and convolutions in a pass of one image with the image's gradient.

    Each multiplication and each addition is one; weights are frozen, so their gradient takes none.
    """
    model = create(network).requires_grad_(False)
    image = torch.rand(1, *model.image_shape, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        model(image).sum().backward()
    return int(counter.get_total_flops())


@functools.cache
def votes(network: str) -> int:
    """Multiplications by which capsules vote, in all routed layers, for one image."""
    return sum(layer.weight.numel() for layer in layers_of(create(network), RoutedCapsules))


def floor_ms(network: str, batch: int, device_name: str) -> float | None:
    """The least time of a pass with the image's gradient by its arithmetic, on an H200; None where it isn't known."""
    if network not in PRESETS or network == "matrix" or "H200" not in device_name:
        return None
    # The matrix units reach 790 TFLOP/s in bfloat16; routing of the paper's network takes 0.17 ms for 128 images.
    return batch * (1000 * product_flop(network) / 790e12 + 0.17 / 128 * votes(network) / votes("paper"))
