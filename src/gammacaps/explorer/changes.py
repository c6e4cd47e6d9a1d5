"""What may be done to an image before it is shown to the network: it is turned, shifted, blurred and darkened."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from gammacaps.corruptions.smoothing import smooth
from gammacaps.errors import InputError
from gammacaps.explorer.plain_values import number
from gammacaps.ops.placing import placed

# The least and the most of each: degrees clockwise, pixels, pixels, the deviation of the blur in pixels, and the share
# of the light that is lost.
CHANGES = {
    "turn": (-180.0, 180.0),
    "right": (-64.0, 64.0),
    "down": (-64.0, 64.0),
    "blur": (0.0, 8.0),
    "dark": (0.0, 1.0),
}

Change = tuple[tuple[str, float], ...]  # those that are not 0, in the table's order


def read_change(asked: Any) -> Change:
    if not isinstance(asked, dict) or not set(asked) <= set(CHANGES):
        raise InputError(f'change must be an object of numbers, such as {{"turn": 10}}, for {", ".join(CHANGES)}.')
    values = {name: number(name, asked.get(name, 0), *CHANGES[name]) for name in CHANGES}
    return tuple((name, value) for name, value in values.items() if value != 0)


def changed(image: Float[Tensor, "C H W"], change: Change) -> Float[Tensor, "C H W"]:
    """The image so changed, in bytes as any other: turned about its centre, then shifted, blurred, darkened."""
    if not change:
        return image
    how = dict(change)
    images = image.unsqueeze(0)
    if {"turn", "right", "down"} & set(how):
        images = placed(images, turn=how.get("turn", 0), right=how.get("right", 0), down=how.get("down", 0))
    if "blur" in how:
        images = smooth(images, how["blur"])
    return ((1 - how.get("dark", 0)) * images[0] * 255).round().clamp(0, 255) / 255
