"""Networks beyond 28x28 for a few hundred steps: `python -m benchmarks.larger`, with --quick on a CPU.

smallNORB with the residual preset, and a layer of 1,000 class capsules above capsules that tell 1,000 kinds apart. One
line of JSON a task: steps a second, peak memory, accuracy at the start, at the end, and the machine.
"""

import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
import tyro
from torch import Tensor, nn

from gammacaps import create
from gammacaps.data import find, load_data
from gammacaps.environment import describe_machine, pick_device
from gammacaps.memory import reuse_memory
from gammacaps.nn import RoutedCapsules
from gammacaps.ops import length, squash
from gammacaps.training.losses import margin_loss

Batch = Callable[[], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Options:
    """Train larger networks on clean images for some steps, and tell speed, memory and accuracy."""

    size: int = 96
    """Side of smallNORB's images; a copy of 48x48 is enlarged to more, so give 48 for it."""
    steps: int = 300
    """Steps of each task."""
    batch: int = 64
    """Images a step."""
    lower: int = 256
    """Capsules below the layer of many classes."""
    classes: int = 1000
    """Classes of that layer."""
    lr: float = 3e-3
    """Adam's rate."""
    seed: int = 0
    """Seed of weights and batches."""
    data_dir: str | None = None
    """Folder in which smallNORB lies."""
    device: str = "auto"
    """auto, cpu, cuda."""
    quick: bool = False
    """Small sizes and few steps, for a CPU; noise in the place of smallNORB where it is not at hand."""


def quick(options: Options) -> Options:
    return Options(
        **{**asdict(options), "size": 48, "steps": 6, "batch": 8, "lower": 16, "classes": 1000, "quick": True}
    )


class ManyClasses(nn.Module):
    """One routed layer from `lower` capsules of 8 entries to `classes` capsules of 16, started as in a network."""

    def __init__(self, lower: int, classes: int) -> None:
        super().__init__()
        self.routed = RoutedCapsules(lower, classes, 8, 16)
        self.routed.start_long()

    def forward(self, poses: Tensor) -> Tensor:
        return length(self.routed(poses).poses)


def kinds(lower: int, classes: int, batch: int, device: torch.device, seed: int) -> Batch:
    """Batches of capsules (B, I, 8), each a class's own poses with noise on them."""
    generator = torch.Generator(device).manual_seed(seed)
    own = torch.randn(classes, lower, 8, generator=generator, device=device)

    def draw() -> tuple[Tensor, Tensor]:
        labels = torch.randint(classes, (batch,), generator=generator, device=device)
        noise = torch.randn(batch, lower, 8, generator=generator, device=device)
        return squash(own[labels] + 0.3 * noise), labels

    return draw


def norb(options: Options, device: torch.device) -> tuple[Batch, Batch]:
    """Batches of smallNORB's two splits."""
    batches = []
    at_hand = not options.quick or find("smallnorb", options.data_dir) is not None  # a quick try downloads nothing
    for split in ("train", "test"):
        images, labels = torch.rand(64, 1, options.size, options.size), torch.arange(64) % 5
        if at_hand:
            images, labels = load_data("smallnorb", split, data_dir=options.data_dir, size=options.size)
        images, labels = images.to(device), labels.to(device)
        generator = torch.Generator(device).manual_seed(options.seed)
        batches.append(_drawn(images, labels, options.batch, generator))
    return batches[0], batches[1]


def _drawn(images: Tensor, labels: Tensor, batch: int, generator: torch.Generator) -> Batch:
    def draw() -> tuple[Tensor, Tensor]:
        index = torch.randint(len(images), (batch,), generator=generator, device=images.device)
        return images[index], labels[index]

    return draw


def train(model: nn.Module, batches: Batch, tests: Batch, options: Options) -> dict[str, float]:
    """Trains, and tells speed, memory and the accuracy on other batches before and after."""
    device = next(model.parameters()).device
    on_gpu = device.type == "cuda"
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, fused=on_gpu)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    before = accuracy(model, tests, options)
    start, warm = time.perf_counter(), min(options.steps // 2, 10)
    for step in range(options.steps):
        if step == warm:  # what is compiled at first use is not counted
            _wait(device)
            start = time.perf_counter()
        images, labels = batches()
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            loss = margin_loss(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    _wait(device)
    taken = time.perf_counter() - start
    # On a CPU the process's own peak, so that the first task's counts for all.
    peak = (
        torch.cuda.max_memory_allocated(device) if on_gpu else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    )
    return {
        "steps_a_second": round((options.steps - warm) / taken, 3),
        "peak_mib": round(peak / 2**20, 1),
        "loss": round(loss.item(), 4),
        "accuracy_before": before,
        "accuracy": accuracy(model, tests, options),
    }


@torch.no_grad()
def accuracy(model: nn.Module, tests: Batch, options: Options) -> float:
    """Over up to 32 batches."""
    right = [
        (model(images).argmax(1) == labels).float().mean()
        for images, labels in (tests() for _ in range(32 if not options.quick else 2))
    ]
    return round(torch.stack(right).mean().item(), 4)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    options = tyro.cli(Options, prog="python -m benchmarks.larger")
    options = quick(options) if options.quick else options
    reuse_memory()
    device = pick_device(options.device)
    facts = {
        "steps": options.steps,
        "batch": options.batch,
        "quick": options.quick,
        "machine": describe_machine(options.device),
    }

    torch.manual_seed(options.seed)
    few = {"filters": 8, "primary_types": 4} if options.quick else {}
    model = create("residual", image_shape=(1, options.size, options.size), classes=5, decoder=(), **few).to(device)
    figures = train(model, *norb(options, device), options)
    print(json.dumps({"task": "smallnorb", "size": options.size, "classes": 5, **figures, **facts}), flush=True)

    torch.manual_seed(options.seed)
    layer = ManyClasses(options.lower, options.classes).to(device)
    drawn = kinds(options.lower, options.classes, options.batch, device, options.seed)
    figures = train(layer, drawn, drawn, options)
    print(json.dumps({"task": "many classes", "lower": options.lower, "classes": options.classes, **figures, **facts}))


if __name__ == "__main__":
    main()
