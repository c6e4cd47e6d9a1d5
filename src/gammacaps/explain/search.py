"""How the input that a capsule looks for is searched: where to start, and how the steps of Algorithm 2 change."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Shape = tuple[int, int, int]
GREYS = (0.0, 0.15, 0.3, 0.45)  # on which faint noise lies


@dataclass(frozen=True)
class Search:
    """A way to search within equation 4."""

    start: Callable[[np.random.Generator, int, Shape], np.ndarray]
    first: float  # length of the first step, as a share of the step asked for; from there to the last it falls evenly
    last: float
    class_penalty: float  # unless told; hidden capsules have the paper's
    apart: bool  # whether what the best starts found is averaged only as far as it is the same
    steady: bool  # whether the steps are those of steady.py, else the gradient's signs as in the paper
    words: str  # for whoever looks at the pictures


def noise(generator: np.random.Generator, starts: int, shape: Shape) -> np.ndarray:
    """Uniform, as in the paper."""
    return generator.random((starts, *shape), dtype=np.float32)


def faint_noise(generator: np.random.Generator, starts: int, shape: Shape) -> np.ndarray:
    """Noise of a tenth of the contrast on greys from black to nearly the middle, by turns.

    Full noise is full of edges, which capsules take for something, and what they take it for is what the search ends
    at. Some capsules are found from the dark alone, others from grey alone.
    """
    faint = np.float32(0.1) * noise(generator, starts, shape)
    greys = np.resize(np.array(GREYS, np.float32), starts)
    return faint + greys[:, None, None, None]


SEARCHES: dict[str, Search] = {
    "improved": Search(
        faint_noise,
        first=2.0,
        last=0.1,
        class_penalty=1e-4,
        apart=True,
        steady=True,
        words="a dark or grey start was changed step by step, under noise and small shifts",
    ),
    "paper": Search(
        noise,
        first=1.0,
        last=1.0,
        class_penalty=0.0,
        apart=False,
        steady=False,
        words="noise was changed in steps of one length, as in the paper",
    ),
}


def start_images(
    seed: int, layer: int, capsule: int, starts: int, shape: Shape, search: str = "paper"
) -> Float[Tensor, "B C H W"]:
    """Where a capsule's search starts, the same on every device and in whatever company."""
    generator = np.random.default_rng((seed, layer, capsule))
    return torch.from_numpy(SEARCHES[search].start(generator, starts, shape))


def step_sizes(search: str, steps: int, step: float) -> list[float]:
    """The length of each step."""
    how = SEARCHES[search]
    return [step * (how.first + (how.last - how.first) * k / max(1, steps - 1)) for k in range(steps)]
