"""Small folders of drawn pictures."""

from pathlib import Path

import numpy as np
from PIL import Image


def stripes(
    folder: Path, classes: tuple[str, ...] = ("across", "down"), count: int = 12, *, colour: bool = False
) -> Path:
    """Pictures of 14 x 12: bars across, bars down, or (a third class) a filled ground; grey or in colours."""
    rng = np.random.default_rng(0)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for k in range(count):
            pixels = rng.integers(0, 60, (12, 14, 3) if colour else (12, 14)).astype(np.uint8)
            start = int(rng.integers(1, 8))
            if name == "across":
                pixels[start : start + 3] = rng.integers(150, 256)
            elif name == "down":
                pixels[:, start : start + 3] = rng.integers(150, 256)
            else:
                pixels[2:-2, 2:-2] = rng.integers(150, 256)
            Image.fromarray(pixels).save(folder / name / f"{k:03}.png")
    return folder
