"""Toys drawn for the page, where the images of smallNORB are not on this machine."""

import torch
from torch import Tensor

from gammacaps.data import DataSet
from gammacaps.explorer.drawn_digits import Line, drawn
from gammacaps.ops.placing import placed

NAME = "drawn toys"
CLASSES = ("animal", "human", "airplane", "truck", "car")
GROUND, SHADOW = 0.93, 0.06  # how light the table is, and how much darker below a toy
TURNS = (0.0, -15.0, 15.0)  # degrees

Part = tuple[Line, float, float]  # a line, the radius of its pen in pixels, and how much darker it is than the table

TOYS: tuple[tuple[Part, ...], ...] = (
    (
        ([(9, 13), (17.5, 12.5)], 2.6, 0.3),
        ([(18.5, 10.5), (21, 9)], 1.6, 0.36),
        ([(9, 15), (8.5, 20)], 0.9, 0.45),
        ([(11.5, 15), (12, 19)], 0.8, 0.5),
        ([(16, 15), (15.5, 19)], 0.8, 0.5),
        ([(18, 14.5), (19, 20)], 0.9, 0.45),
        ([(7, 12), (6, 15)], 0.5, 0.4),
    ),
    (
        ([(14, 7.5), (14, 8)], 1.3, 0.5),
        ([(14, 11), (14, 15)], 1.6, 0.5),
        ([(13, 11), (9, 13), (7.5, 16)], 0.4, 0.45),
        ([(15, 11), (19, 11.5), (22, 9)], 0.4, 0.45),
        ([(13.5, 15), (12, 18), (11.5, 21.5)], 0.7, 0.55),
        ([(14.5, 15), (16, 18), (17, 21.5)], 0.7, 0.55),
    ),
    (
        ([(14, 6), (14, 22)], 1.1, 0.36),
        ([(4, 14.5), (14, 11.5), (24, 14.5)], 0.9, 0.34),
        ([(10.5, 22), (14, 20.5), (17.5, 22)], 0.5, 0.4),
    ),
    (
        ([(9, 6), (12, 5), (20, 17), (17, 19), (9, 6)], 0.9, 0.2),
        ([(11, 7), (17.5, 16.5)], 2.2, 0.18),
        ([(8.5, 7), (8.5, 11), (16, 22.5), (16.5, 19.5), (8.5, 7)], 0.8, 0.42),
        ([(10, 11), (15.5, 19.5)], 1.2, 0.42),
        ([(17, 22), (20.5, 19.5), (20.5, 17.5), (17.5, 19.5)], 0.8, 0.6),
    ),
    (
        ([(8, 8), (12, 6.5), (21, 18), (16.5, 21), (8, 8)], 1.3, 0.12),
        ([(11, 9), (17.5, 18)], 1.6, 0.1),
        ([(7.5, 9.5), (15, 22), (21.5, 19.5)], 0.7, 0.42),
        ([(14, 17), (18.5, 14)], 0.7, 0.4),
        ([(9.5, 11), (12.5, 9)], 0.4, 0.3),
        ([(8, 12), (8.5, 13)], 0.7, 0.6),
        ([(13, 20), (13.5, 21)], 0.7, 0.6),
    ),
)


def drawn_toys() -> DataSet:
    """Each toy from above, three times, in the shape of smallNORB's images here."""
    upright = torch.stack([relief(parts) for parts in TOYS]).unsqueeze(1)  # 5 1 H W
    dark = torch.cat([placed(upright, turn=turn) for turn in TURNS])
    below = torch.nn.functional.avg_pool2d(torch.nn.functional.pad(dark, (3, 3, 3, 3)), 7, 1)  # a soft shadow
    images = (GROUND - dark.maximum(below.div(0.2).clamp(0, 1) * SHADOW)).clamp(0, 1)
    return DataSet(images, torch.arange(len(TOYS)).repeat(len(TURNS)), CLASSES, NAME, "drawn by gammacaps")


def relief(parts: tuple[Part, ...]) -> Tensor:
    """How much darker than the table each pixel is (H, W)."""
    return torch.stack([dark * drawn((line,), radius) for line, radius, dark in parts]).amax(0)
