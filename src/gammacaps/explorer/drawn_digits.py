"""Digits drawn for the page, where the images of MNIST are not on this machine."""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.data import DataSet
from gammacaps.ops.placing import placed

NAME = "drawn digits"
CLASSES = tuple("0123456789")
SIDE, RADIUS = 28, 1.3  # of an image and of the pen, in pixels
TURNS = (0.0, -12.0, 12.0)  # degrees: each digit comes upright and leaning to either side

Line = list[tuple[float, float]]  # from point to point, (x, y) in pixels


def arc(x: float, y: float, wide: float, high: float, start: float, end: float) -> Line:
    """A part of an ellipse about (x, y), from one angle to another in degrees: 0 is right, 90 below."""
    angles = [math.radians(start + (end - start) * k / 24) for k in range(25)]
    return [(x + wide * math.cos(angle), y + high * math.sin(angle)) for angle in angles]


STROKES: tuple[tuple[Line, ...], ...] = (
    (arc(14, 14, 5, 8, 0, 360),),
    ([(14, 6), (14, 22)],),
    ([*arc(14, 10.5, 4.5, 4.5, 190, 380), (9.5, 21.5), (19, 21.5)],),
    ([*arc(13.5, 10, 4.5, 4, 200, 450), *arc(13.5, 18, 5, 4, 270, 510)],),
    ([(10, 6), (9, 14.5), (18, 14.5)], [(17.5, 7), (17, 22)]),
    ([(18, 6.5), (10.5, 6.5), (10, 13), *arc(13.5, 17, 4.5, 4.5, 230, 500)],),
    ([(16, 6), (11.5, 12), *arc(14, 17.5, 4.3, 4.3, 190, 550)],),
    ([(9, 6.5), (19, 6.5), (13, 22)],),
    (arc(14, 10, 3.6, 3.7, 90, 450), arc(14, 18, 4.3, 4.3, 270, 630)),
    ([*arc(13.5, 10.5, 4, 4.2, 0, 360), (17.3, 13), (16.5, 22)],),
)


def drawn_digits() -> DataSet:
    """Each digit three times, in the shape of MNIST's images."""
    upright = torch.stack([drawn(lines) for lines in STROKES]).unsqueeze(1)  # 10 1 H W
    images = torch.cat([placed(upright, turn=turn) for turn in TURNS])
    return DataSet(images, torch.arange(10).repeat(len(TURNS)), CLASSES, NAME, "drawn by gammacaps")


def drawn(lines: tuple[Line, ...], radius: float = RADIUS) -> Float[Tensor, "H W"]:
    """Lines as a pen draws them on the pad: white, soft at the border, on black."""
    middles = torch.arange(SIDE) + 0.5
    at = torch.stack(torch.meshgrid(middles, middles, indexing="xy"), dim=-1)  # H W 2, as (x, y)
    image = torch.zeros(SIDE, SIDE)
    for line in lines:
        for here, there in itertools.pairwise(line):
            start, end = torch.tensor([here, there], dtype=torch.float32)
            way = end - start
            along = ((at - start) @ way / way.square().sum().clamp_min(1e-9)).clamp(0, 1)  # H W
            away = (at - start - along.unsqueeze(-1) * way).norm(dim=-1)
            image = image.maximum((radius + 0.5 - away).clamp(0, 1))
    return image
