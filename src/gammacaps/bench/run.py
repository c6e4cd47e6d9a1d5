"""A benchmark from end to end: first the gate for all ways, then the times of those that passed it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from gammacaps.bench import gate
from gammacaps.bench.config import BenchConfig, TaskName
from gammacaps.bench.table import append, check_columns, machine
from gammacaps.bench.tasks import TITLES, BenchTask, task_of
from gammacaps.bench.ways import Call
from gammacaps.bench.whole import IMAGES, SHIPPED, WHOLE
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.files import check_can_write
from gammacaps.models import GammaCapsNet, create
from gammacaps.progress import say

FIXED_BATCH: dict[TaskName, int] = {"training": 128, "many": 64, "matrix": 128, "pgd": 128, "short-training": 128}
ONLY_GPU: tuple[TaskName, ...] = ("training", "many", "pgd", "short-training", "autoattack", "audit")
# Tasks that are done for networks of their own, whatever the preset.
NETWORKS: dict[TaskName, tuple[str, ...]] = {
    "pgd": ("paper", "deep", "cnn", "residual", "matrix"),
    "short-training": ("deep",),
}
CPU_NETWORKS: dict[TaskName, tuple[str, ...]] = {"attack": ("small", "deep")}  # beside the preset
LONG: tuple[TaskName, ...] = ("training", "short-training", "pgd")  # many passes each
WARM_UP, QUICK, TRAINING = 3, 3, 5  # calls before any is timed; rounds at most
# Routing's new weights are multiplied by this: many votes are then shortened, as they are in a trained network.
WEIGHTS = 4

Result = TypeVar("Result")


@dataclass
class Timed:
    """A way that passed the gate: its call, its times in ms and the most bytes that it took."""

    task: BenchTask
    way: str
    run: Call
    peak: int | None
    times: list[float] = field(default_factory=list)


class Benchmark:
    """Rows of figures, and whether anything failed."""

    def __init__(self, config: BenchConfig) -> None:
        self.config, self.device, self.failed = config, pick_device(config.device), False
        self.gpu, self.machine = self.device.type == "cuda", machine(self.device)
        if self.gpu and self.device.index is not None:
            torch.cuda.set_device(self.device)
        self.models: dict[str, GammaCapsNet] = {}

    def model(self, network: str) -> GammaCapsNet:
        """A new network with frozen weights, made once."""
        if network not in self.models:
            torch.manual_seed(0)
            model = cast(GammaCapsNet, create(network)).to(self.device).requires_grad_(False)
            for layer in model.routed:
                layer.get_parameter("weight").mul_(WEIGHTS)
            self.models[network] = model
        return self.models[network]

    def run(self) -> Iterator[list[dict[str, Any]]]:
        """The rows of one task after the other, once all have been through the gate."""
        for ways in [self.passed(*task) for task in self.chosen()]:
            yield self.timed(ways)
        for name in WHOLE:
            if self.gpu and name in self.config.tasks:
                yield self.whole(name)

    def chosen(self) -> list[tuple[TaskName, str, int]]:
        """Tasks, their networks and batches, as far as they can run here."""
        names = [name for name in TITLES if name in self.config.tasks and (self.gpu or name not in ONLY_GPU)]
        if not names:
            raise InputError(f"There is nothing to measure: name tasks with --tasks ({', '.join(ONLY_GPU)}: on a GPU).")
        if not self.gpu:
            left_out = ", ".join(["way compiled"] + [TITLES[n] for n in ONLY_GPU if n in self.config.tasks])
            self.say(f"Skipped, since this is a CPU: {left_out}")
        batches = tuple(dict.fromkeys(self.config.batches)) or ((32, 128, 512) if self.gpu else (8,))
        fixed = FIXED_BATCH if self.gpu else {}
        return [
            (name, network, batch)
            for name in names
            if name not in WHOLE
            for network in self.networks(name)
            for batch in ((fixed[name],) if name in fixed else batches)
        ]

    def networks(self, name: TaskName) -> tuple[str, ...]:
        """The networks that a task is done for."""
        own = NETWORKS if self.gpu else CPU_NETWORKS
        return tuple(dict.fromkeys((*(() if name in NETWORKS else (self.config.preset,)), *own.get(name, ()))))

    def say(self, line: str, failure: bool = False) -> None:
        self.failed |= failure
        say(line)

    def tried(self, name: TaskName, way: str, batch: int, work: Callable[[], Result]) -> Result | None:
        """What the work gives; where it can't, a line says so and the rest goes on."""
        try:
            return work()
        except Exception as error:
            reason = (str(error).strip().splitlines() or [""])[0][:300]
            self.say(f"{TITLES[name]} {way} {batch}: failed: {type(error).__name__}: {reason}", failure=True)
            return None

    def passed(self, name: TaskName, network: str, batch: int) -> list[Timed]:
        """The gate: the ways whose answers are right."""

        def prepared() -> tuple[BenchTask, tuple[Tensor, ...]]:
            of = self.config.preset if name in NETWORKS else network
            task = task_of(name, network, self.model(of), batch, self.gpu)
            return task, task.exact()

        if (answer := self.tried(name, "exact", batch, prepared)) is None:
            return []
        (task, exact), right = answer, []
        plain: list[float] = []  # the errors of plain PyTorch
        for way, make in (task.ways if self.gpu else task.on_cpu or {"eager": task.ways["eager"]}).items():

            def checked(way: str = way, make: Callable[[], Call] = make) -> tuple[Timed, list[float]]:
                (run, outputs), peak = self.with_peak(lambda: first_call(make))
                return Timed(task, way, run, peak), gate.relative_errors(outputs, exact, task.labels)

            if (made := self.tried(name, way, batch, checked)) is None:
                continue
            timed, errors = made
            plain = errors if way == "eager" else plain
            wrong = gate.objection(task.outputs, errors, plain if task.low and plain else None)
            errors_by_name = ", ".join(f"{name} {error:.1e}" for name, error in zip(task.outputs, errors, strict=True))
            verdict = wrong or f"right, errors {errors_by_name}"
            where = f" {network}" if name in NETWORKS or (not self.gpu and name in CPU_NETWORKS) else ""
            self.say(f"{TITLES[name]}{where} {way} {batch}: {verdict}", failure=wrong is not None)
            right += [timed] if wrong is None else []
        return right

    def timed(self, ways: list[Timed]) -> list[dict[str, Any]]:
        """A row for each way. They take turns, so that a machine that slows down slows all alike."""
        training = any(timed.task.name in LONG for timed in ways)
        most = QUICK if self.config.quick else TRAINING if training else self.config.rounds
        for n in range(-1, min(self.config.rounds, most)):
            work = self.turn if n >= 0 else self.warm_up
            tried = [self.tried(w.task.name, w.way, w.task.batch, partial(work, w)) for w in ways]
            ways = [timed for timed in tried if timed is not None]
        rivals = {timed.way: timed.times for timed in ways if timed.way in ("compiled", "eager")}
        return [self.row(timed, rivals) for timed in ways]

    def whole(self, name: str) -> list[dict[str, Any]]:
        """The row of work that is done once, if it passes its gate."""
        title: TaskName = cast(TaskName, name)
        work = self.tried(title, "engine", IMAGES, lambda: WHOLE[name](self.device))
        if work is None:
            return []
        wrong = self.tried(title, "engine", IMAGES, lambda: work.objection() or "")
        if wrong is None:
            return []
        self.say(f"{TITLES[title]} engine {IMAGES}: {wrong or 'right'}", failure=bool(wrong))
        timed = Timed(BenchTask(title, SHIPPED, IMAGES, {}, tuple, ()), "engine", tuple, None)
        started = time.perf_counter()
        if wrong or self.tried(title, "engine", IMAGES, lambda: work.run() or True) is None:
            return []
        torch.cuda.synchronize(self.device)
        timed.times.append(1000 * (time.perf_counter() - started))
        return [self.row(timed, {})]

    def row(self, timed: Timed, rivals: dict[str, list[float]]) -> dict[str, Any]:
        task, (q1, median, q3) = timed.task, np.quantile(timed.times, [0.25, 0.5, 0.75]).tolist()
        floor = gate.floor_ms(task.network, task.batch, self.machine["device_name"])
        passes = {"attack": 1, "pgd": 40}.get(task.name)
        return {
            **self.machine,
            "network": task.network,
            "task": TITLES[task.name],
            "way": timed.way,
            "batch": task.batch,
            "median_ms": median,
            "q1_ms": q1,
            "q3_ms": q3,
            "repeats": len(timed.times),
            "peak_mib": None if timed.peak is None else (timed.peak - task.not_counted) / 2**20,
            "floor_share": None if floor is None or passes is None else passes * floor / median,
            # Of the ratios within each round, where the machine is the same.
            "ratio_to_compiled": ratio(timed.times, rivals.get("compiled")),
            "ratio_to_eager": ratio(timed.times, rivals.get("eager")),
        }

    def warm_up(self, timed: Timed) -> Timed:
        training = timed.task.name in LONG
        for _ in range(WARM_UP if self.gpu and not training else 1):
            timed.run()
        if timed.way != "engine" and not training:  # these two keep the memory that they took at first
            _, timed.peak = self.with_peak(timed.run)
        return timed

    def turn(self, timed: Timed) -> Timed:
        """One call. On a GPU it follows another without a pause, as in an attack, so that no launch is waited for."""
        if self.gpu:
            timed.run()
            before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            before.record()
            timed.run()
            after.record()
            after.synchronize()
            timed.times.append(before.elapsed_time(after))
        else:
            start = time.perf_counter()
            timed.run()
            timed.times.append(1000 * (time.perf_counter() - start))
        return timed

    def with_peak(self, work: Callable[[], Result]) -> tuple[Result, int | None]:
        """What the work gives, and the most bytes of GPU memory that it has at once beyond what was there before."""
        if not self.gpu:
            return work(), None
        torch.cuda.synchronize(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        result = work()
        return result, torch.cuda.max_memory_allocated(self.device) - before


def ratio(times: list[float], rival: list[float] | None) -> float | None:
    """The median of the ratios within each round; None without a rival."""
    return None if rival is None else float(np.median(np.divide(times, rival)))


def first_call(make: Callable[[], Call]) -> tuple[Call, tuple[Tensor, ...]]:
    run = make()
    return run, run()


def run_bench(config: BenchConfig, out: Path | None = None) -> tuple[list[dict[str, Any]], bool]:
    """Rows of figures, appended to a CSV file where one is named, and whether anything failed."""
    if out is not None:
        check_columns(out)  # before the work, not after
        check_can_write(out.parent)
    benchmark, rows = Benchmark(config), []
    for of_task in benchmark.run():
        rows += of_task
        if out is not None:
            append(of_task, out)  # at once: what is measured stays, whatever comes after
    return rows, benchmark.failed
