"""The table of corruptions, in the order of the paper, and the one function that applies them."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.corruptions.blur import glass_blur, motion_blur
from gammacaps.corruptions.cover import brightness, fog, spatter, stripe
from gammacaps.corruptions.edges import canny_edges
from gammacaps.corruptions.geometry import rotate, scale, shear, translate
from gammacaps.corruptions.lines import dotted_line, zigzag
from gammacaps.corruptions.noise import impulse_noise, shot_noise
from gammacaps.data import check_images
from gammacaps.errors import check_choice
from gammacaps.options import check_seed

Corruption = Callable[[Tensor, torch.Generator], Tensor]
"""Images (B, C, H, W) in [0, 1] and a generator on the CPU to images of the same shape, which may leave [0, 1]."""

_KINDS: dict[str, Corruption] = {
    "shot noise": shot_noise,
    "impulse noise": impulse_noise,
    "glass blur": glass_blur,
    "motion blur": motion_blur,
    "shear": shear,
    "scale": scale,
    "rotate": rotate,
    "brightness": brightness,
    "translate": translate,
    "stripe": stripe,
    "fog": fog,
    "spatter": spatter,
    "dotted line": dotted_line,
    "zigzag": zigzag,
    "canny edges": canny_edges,
}


def kinds() -> tuple[str, ...]:
    """The names of the corruptions."""
    return tuple(_KINDS)


@torch.no_grad()
def corrupt(images: Float[Tensor, "B C H W"], kind: str, *, seed: int = 0) -> Float[Tensor, "B C H W"]:
    """The images with one kind of damage, as strong as in MNIST-C; the same for the same images and seed.

    What MNIST-C counts in pixels of its 28 x 28 images grows with the shorter side. What it draws is drawn on the CPU,
    so that it does not depend on the device.
    """
    check_choice("corruption", kind, _KINDS)
    check_seed(seed)
    check_images(images)
    return _KINDS[kind](images, torch.Generator().manual_seed(seed)).clamp(0, 1).to(images)
