"""What figures are held against: answers against exact ones, times against the least that they could be."""

import math
from collections.abc import Sequence

from torch import Tensor

from gammacaps.models.gamma_capsules import GammaCapsConfig

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


def convolution_flop(config: GammaCapsConfig, batch: int) -> int:
    """Operations of both convolutions in a pass with the image's gradient.

    Each output takes a multiplication and an addition for each tap of the kernel and each input channel, and the
    gradient of the input takes as many again; weights are frozen, so theirs takes none.
    """
    channels, *sides = config.image_shape
    sides = [(side - config.kernel) // config.stride + 1 for side in sides]
    first = math.prod(sides) * config.filters * config.kernel**2 * channels
    sides = [(side - config.primary_kernel) // config.primary_stride + 1 for side in sides]
    entries = config.primary_types * config.primary_size
    second = math.prod(sides) * entries * config.primary_kernel**2 * config.filters
    return 2 * 2 * (first + second) * batch


def floor_ms(config: GammaCapsConfig, batch: int, device_name: str) -> float | None:
    """The least time of a pass with the image's gradient: the paper's network on an H200; None for any other."""
    if config != GammaCapsConfig() or "H200" not in device_name:
        return None
    # Its matrix units reach 790 TFLOP/s in bfloat16; the arithmetic of routing takes 0.17 ms for 128 images.
    return 1000 * convolution_flop(config, batch) / 790e12 + 0.17 * batch / 128
