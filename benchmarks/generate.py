"""Algorithm 2 for all hidden and class capsules of a network, timed: `python -m benchmarks.generate`.

What the images are said to activate is first held against the plain formulas in float64; else there is no time.
"""

import copy
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import tyro

from gammacaps import create
from gammacaps.bench.table import append, check_columns, machine, table
from gammacaps.bench.ways import routed_by
from gammacaps.environment import pick_device
from gammacaps.explain.activate import Generated, activate_all
from gammacaps.models import GammaCapsNet, has_kernels, load

LIMIT = 1e-3  # how far a length, which is at most 1, may be from the exact one


@dataclass(frozen=True)
class Options:
    """Generate an input for every hidden and class capsule."""

    run: Path | None = None
    """A trained network; without it a new one of the preset."""
    preset: Literal["paper", "small"] = "paper"
    """The new network."""
    starts: int = 60
    """Random images for each capsule."""
    steps: int = 1000
    """Steps of each image."""
    device: str = "auto"
    """auto, cpu, cuda and so on."""
    out: Path | None = None
    """Append the row to this CSV file."""


def main(options: Options) -> None:
    device = pick_device(options.device)
    if options.out is not None:
        check_columns(options.out)
    torch.manual_seed(0)
    model = (create(options.preset) if options.run is None else load(options.run)).to(device)
    assert isinstance(model, GammaCapsNet)
    for layer in model.layers[1:]:  # kernels are compiled before the time starts
        activate_all(model, layer, [0], starts=options.starts, steps=2, search="paper")
    start = time.perf_counter()
    made = [
        (layer, activate_all(model, layer, starts=options.starts, steps=options.steps, search="paper"))
        for layer in model.layers[1:]
    ]
    seconds = time.perf_counter() - start
    error = max(_error(model, layer, generated) for layer, generated in made)
    if not error <= LIMIT:
        sys.exit(f"Not timed: lengths are off by {error:.1e} (limit {LIMIT:.0e}).")
    count = sum(len(generated) for _, generated in made)
    row = {
        **machine(device),
        "network": options.preset if options.run is None else str(options.run.name),
        "task": f"{count} inputs x {options.steps}",
        "way": "native" if device.type != "cuda" else "engine" if has_kernels(model) else "eager",
        "batch": options.starts,
        **dict.fromkeys(("median_ms", "q1_ms", "q3_ms"), 1000 * seconds),
        "repeats": 1,
        **dict.fromkeys(("peak_mib", "floor_share", "ratio_to_compiled")),
    }
    print(table([row]))
    if options.out is not None:
        append([row], options.out)


def _error(model: GammaCapsNet, layer: str, made: list[Generated]) -> float:
    """How far the lengths given are from those by plain ops in float64, at most."""
    exact = copy.deepcopy(routed_by("torch", model)).double()
    images = torch.stack([one.image for one in made]).double()
    with torch.no_grad():
        lengths = exact.parse(images, couplings=False).activations[model.layers.index(layer)].diagonal()
    given = torch.tensor([one.activation for one in made], device=lengths.device)
    return float((given - lengths).abs().max())


if __name__ == "__main__":
    main(tyro.cli(Options))
