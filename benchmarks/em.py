"""EM routing on a GPU, plain, compiled and by kernels, and some settings of these: `python -m benchmarks.em`.

A pass is the scores and the image's gradient of the matrix-capsule network with frozen weights, convolutions in bf16 as
in `gammacaps bench --tasks matrix`, behind the same gate. Times are medians by CUDA events; those of single kernels are
from torch's profiler.
"""

import contextlib
import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import tyro
from torch import Tensor

from gammacaps.bench import gate, ways
from gammacaps.models import create
from gammacaps.ops.em.kernels import launch
from gammacaps.replay.recording import Recording

# What to try, beside what is set: constants of `ops/em/kernels/launch.py`.
SETTINGS: list[dict[str, Any]] = [
    {"FIT": (2, 16), "SLOPES": (2, 8), "POSES": (2, 8)},
    {"FIT": (8, 16), "SLOPES": (8, 8), "POSES": (8, 8)},
    {"FEW": 512},
    {"FEW": 2048},
    {"CHILDREN": (16, 4)},
    {"CHILDREN": (64, 4)},
    {"WEIGHT": (8, 64)},
    {"WEIGHT": (4, 128)},
]
OUTPUTS = ("scores", "image gradient")


@dataclass(frozen=True)
class Options:
    """Time a pass of the matrix-capsule network on a GPU."""

    batch: int = 128
    """Images a pass."""
    iterations: int = 2
    """Of EM routing."""
    repeats: int = 15
    """Calls of which the median is taken."""
    tune: bool = True
    """Try other settings of the kernels too."""


def median_ms(run: ways.Call, repeats: int) -> float:
    times = []
    for _ in range(3 + repeats):
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        run()
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after))
    return float(torch.tensor(times[3:]).median())


def peak_mib(run: ways.Call) -> float:
    """The most memory that a call has at once, beyond what was there before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def kernel_times(run: ways.Call) -> str:
    """Microseconds in each of the kernels of EM routing, over all layers."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    ours = ("fit", "share", "share_gradient", "slopes", "poses", "gather", "weight")
    times = {event.key: event.self_device_time_total for event in profile.key_averages()}
    return ", ".join(f"{name} {times[f'{name}_kernel']:.0f}" for name in ours if f"{name}_kernel" in times)


@contextlib.contextmanager
def set_to(setting: dict[str, Any]) -> Iterator[None]:
    before = {name: getattr(launch, name) for name in setting}
    for name, value in setting.items():
        setattr(launch, name, value)
    yield
    for name, value in before.items():
        setattr(launch, name, value)


def learning(model: Any, images: Tensor) -> Callable[[], tuple[Tensor, ...]]:
    """The gradients of all weights, by kernels."""
    parameters = [p.requires_grad_() for p in model.parameters()]
    return lambda: torch.autograd.grad(model(images).square().sum(), parameters)


def main() -> None:
    options = tyro.cli(Options, prog="python -m benchmarks.em")
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA device here.")
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = create("matrix", iterations=options.iterations).requires_grad_(False)
        images, labels = torch.rand(options.batch, *model.image_shape), torch.randint(10, (options.batch,))
    model = model.cuda()
    run = partial(ways.network, labels=labels, gradient=True)
    exact = ways.plainly(lambda: run(copy.deepcopy(model).double(), images.double()))()
    prepare: dict[str, Callable[[], ways.Call]] = {
        "eager": lambda: ways.plainly(lambda: run(model, images, low=True)),
        "compiled": lambda: ways.plainly(lambda: run(model, images, low=True, compile=True)),
        "kernels": lambda: run(model, images, low=True),
        "kernels, graph": lambda: Recording(run(model, images, low=True), images.device).replay,
    }
    # In float32 throughout first: that is where a kernel's own error shows.
    full = gate.relative_errors(run(model, images)(), exact, labels)
    plain_full = gate.relative_errors(ways.plainly(lambda: run(model, images))(), exact, labels)
    print(f"float32 errors: kernels {full}, plain {plain_full}")
    wrong = gate.objection(OUTPUTS, full, plain_full)
    plain = None
    for name, make in prepare.items():
        call = make()
        errors = gate.relative_errors(call(), exact, labels)
        plain = plain or errors
        objection = gate.objection(OUTPUTS, errors, plain)
        wrong = wrong or (None if objection is None else f"{name}: {objection}")
        said = objection or f"{median_ms(call, options.repeats):7.3f} ms, {peak_mib(call):7.0f} MiB"
        print(f"{name:16}{said}   errors {', '.join(f'{error:.1e}' for error in errors)}")
    if options.tune and wrong is None:
        for setting in [{}, *SETTINGS]:
            with set_to(setting):
                call, frozen = prepare["kernels"](), prepare["kernels, graph"]()
                print(f"{setting or 'as set'}: {median_ms(frozen, options.repeats):.3f} ms; us: {kernel_times(call)}")
                step = learning(model, images)
                print(f"    with all weights: {median_ms(step, options.repeats):.3f} ms; us: {kernel_times(step)}")
                model.requires_grad_(False)
    if wrong is not None:
        sys.exit(wrong)


if __name__ == "__main__":
    main()
