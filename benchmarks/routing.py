"""Forward pass and gradient of the input on a CPU, three ways in one process: `python -m benchmarks.routing`.

The ways take turns, so that a noisy machine hurts all alike, and no time is shown unless their answers agree.
"""

import csv
import datetime
import functools
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor

from benchmarks import materialised
from gammacaps import create
from gammacaps.environment import describe_machine
from gammacaps.memory import reuse_memory
from gammacaps.models import GammaCapsNet
from gammacaps.nn import RoutedCapsules
from gammacaps.ops import rule_named, squash
from gammacaps.ops.routing.rules import route_by_formula

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cpu-routing.csv"
MACHINE = ("gammacaps", "commit", "device_name", "threads", "torch", "python")
MEASURED = ("implementation", "batch", "repeats", "median_ms", "q1_ms", "q3_ms", "ratio_to_materialised")
COLUMNS = ("date", *MACHINE, "what", *MEASURED)

# Worst sample's error relative to the reference, in norm. Float32 leaves about 1e-6 and 1e-5.
OUTPUT_LIMIT, GRADIENT_LIMIT = 1e-4, 1e-3
WARM_UP = 2
PRESETS = ("small", "deep")  # beside the paper's network

Way = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Options:
    """Time the paper's network, its first routed layer, and the presets small and deep: forward and gradient of the
    input, on a CPU."""

    batch: int = 8
    """Images a pass."""
    repeats: int = 15
    """Rounds, in each of which every implementation takes its turn."""
    save: bool = False
    """Append the rows to benchmarks/results/cpu-routing.csv."""
    out: Path | None = None
    """Append the rows to this file instead."""


@dataclass(frozen=True)
class RivalTask:
    """The same computation several ways: `input` (B, ...) to an output, then back with the gradient `backwards`."""

    what: str
    ways: dict[str, Way]
    input: Tensor
    backwards: Tensor

    def run(self, name: str) -> tuple[Tensor, Tensor]:
        """Output and gradient of the input."""
        output = self.ways[name](self.input)
        (gradient,) = torch.autograd.grad(output, self.input, self.backwards)
        return output.detach(), gradient


def routing_ways(layer: RoutedCapsules) -> dict[str, Way]:
    """Lower poses (B, I, d) to upper poses (B, J, D), with the layer's weights."""
    weight, bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
    materialised_weight = materialised.by_parent(weight)
    rule, how = rule_named(layer.rule), (layer.iterations, layer.scale_over)
    return {
        "materialised": lambda poses: materialised.sda(poses, materialised_weight, bias, layer.iterations),
        "reference": lambda poses: route_by_formula(rule, poses, weight, bias, *how)[0],
        "gammacaps": lambda poses: layer(poses).poses,
    }


def network_task(model: GammaCapsNet, batch: int, what: str = "network") -> RivalTask:
    """Images to scores. The weights are frozen, as they are under attack."""
    model.requires_grad_(False)
    layers = [routing_ways(layer) for layer in model.routed if isinstance(layer, RoutedCapsules)]
    plain = ("materialised", "reference")
    ways: dict[str, Way] = {name: materialised.network(model, [ways[name] for ways in layers]) for name in plain}
    images = torch.rand(batch, *model.image_shape).requires_grad_()
    return RivalTask(what, {**ways, "gammacaps": model}, images, torch.randn(batch, model.classes))


def routing_task(layer: RoutedCapsules, batch: int) -> RivalTask:
    """Poses to poses through one layer. The weights are frozen."""
    layer.requires_grad_(False)
    I, J, d, D = layer.weight.shape
    poses = squash(torch.randn(batch, I, d)).requires_grad_()
    return RivalTask(f"routing I={I} J={J} d={d} D={D}", routing_ways(layer), poses, torch.randn(batch, J, D))


def relative_error(ours: Tensor, standard: Tensor) -> float:
    """|ours - standard| / |standard| of the worst sample."""
    ours, standard = ours.flatten(1).double(), standard.flatten(1).double()
    return ((ours - standard).norm(dim=1) / standard.norm(dim=1)).max().item()


def disagreements(task: RivalTask) -> list[str]:
    """The gate: a sentence for each implementation that does not give the reference's output or gradient."""
    standard = task.run("reference")
    sentences = []
    for name in task.ways:
        errors = [relative_error(*pair) for pair in zip(task.run(name), standard, strict=True)]
        # Written so that NaN fails.
        if not (errors[0] < OUTPUT_LIMIT and errors[1] < GRADIENT_LIMIT):
            sentences.append(
                f"{task.what}: {name} is not the reference: relative error {errors[0]:.1e} of the output "
                f"(limit {OUTPUT_LIMIT:.0e}), {errors[1]:.1e} of the gradient (limit {GRADIENT_LIMIT:.0e})."
            )
    return sentences


def measure(task: RivalTask, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each implementation in each round."""
    times: dict[str, list[float]] = {name: [] for name in task.ways}
    for _ in range(WARM_UP + repeats):
        for name in task.ways:
            start = time.perf_counter()
            task.run(name)
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: of_rounds[WARM_UP:] for name, of_rounds in times.items()}


def rows_of(task: RivalTask, times: dict[str, list[float]]) -> list[dict[str, Any]]:
    """One row an implementation; its ratio is the median of those within each round, where the machine is the same."""
    rows = []
    for name, of_rounds in times.items():
        least, q1, median, q3 = np.quantile(of_rounds, [0, 0.25, 0.5, 0.75]).tolist()
        ratio = float(np.median(np.divide(of_rounds, times["materialised"])))
        measured = {"batch": len(task.input), "repeats": len(of_rounds), "min_ms": least, "median_ms": median}
        quartiles = {"q1_ms": q1, "q3_ms": q3, "ratio_to_materialised": ratio}
        rows.append({"what": task.what, "implementation": name, **measured, **quartiles})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{rows[0]['what']}, batch {rows[0]['batch']}, {rows[0]['repeats']} rounds; ms"]
    lines.append(f"{'':14}{'median':>9}{'min':>9}{'q1':>9}{'q3':>9}{'ratio':>8}")
    for row in rows:
        times = "".join(f"{row[column]:9.1f}" for column in ("median_ms", "min_ms", "q1_ms", "q3_ms"))
        lines.append(f"{row['implementation']:14}{times}{row['ratio_to_materialised']:8.3f}")
    return "\n".join(lines)


@functools.cache
def commit() -> str:
    """The commit that is checked out, "-dirty" where the code has changed since, or "unknown" outside a repository."""
    git = functools.partial(subprocess.check_output, cwd=ROOT, text=True, stderr=subprocess.DEVNULL)
    try:
        head = git(["git", "rev-parse", "--short", "HEAD"]).strip()
        changed = git(["git", "status", "--porcelain", "--", "src", "benchmarks/*.py"])
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}-dirty" if changed else head


def append(rows: list[dict[str, Any]], path: Path) -> None:
    """Adds the rows to a CSV file of `COLUMNS`, with the date and the machine."""
    machine = describe_machine("cpu") | {"commit": commit(), "date": datetime.date.today().isoformat()}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        if new:
            writer.writeheader()
        for row in rows:
            rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()}
            writer.writerow(machine | rounded)


def benchmark(tasks: list[RivalTask], options: Options) -> None:
    """Gate, times, tables and, where asked for, rows; exits with status 1 where the implementations disagree."""
    wrong = [sentence for task in tasks for sentence in disagreements(task)]
    if wrong:
        sys.exit("\n".join(wrong))
    rows = []
    for task in tasks:
        rows += (of_task := rows_of(task, measure(task, options.repeats)))
        print(table(of_task), end="\n\n")
    path = options.out or (RESULTS if options.save else None)
    if path is not None:
        append(rows, path)
        print(f"Appended {len(rows)} rows to {path}")


def main() -> None:
    options = tyro.cli(Options, prog="python -m benchmarks.routing")
    if options.batch < 1 or options.repeats < 1:
        print("--batch and --repeats must be at least 1.", file=sys.stderr)
        sys.exit(2)  # 1 is the gate's
    reuse_memory()
    torch.manual_seed(0)
    model = create("paper")
    assert isinstance(model, GammaCapsNet)
    first = model.routed[0]
    assert isinstance(first, RoutedCapsules)
    tasks = [network_task(model, options.batch), routing_task(first, options.batch)]
    for preset in PRESETS:
        other = create(preset)
        assert isinstance(other, GammaCapsNet)
        tasks.append(network_task(other, options.batch, f"network {preset}"))
    benchmark(tasks, options)


if __name__ == "__main__":
    main()
