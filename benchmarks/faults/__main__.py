"""Faults on a schedule: `python -m benchmarks.faults`.

For about ten minutes it kills gammacaps, fills its disk, takes its folders away, corrupts its files, trains twice in
one folder and overloads the explorer, all on a tiny network in a temporary folder, and prints a table of what was lost
(exit status 1 where anything was). Each kind of fault comes at least once, which takes some minutes, whatever --minutes
says. The seed decides on the faults: the n-th of a kind is always the same; how many there are is up to the machine.
"""

import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import tyro

from benchmarks.faults.corruption import TARGETS, corrupt, corrupt_library
from benchmarks.faults.crowd import crowd
from benchmarks.faults.disks import fill_disk
from benchmarks.faults.folders import take_folder
from benchmarks.faults.judge import Tried
from benchmarks.faults.kills import kill_training, kill_verb, stop_training
from benchmarks.faults.rivals import train_twice
from benchmarks.faults.stage import Stage
from benchmarks.faults.table import about, check_page, losses, table, write_page
from gammacaps.errors import InputError


@dataclass(frozen=True)
class Options:
    """Break gammacaps in every way at hand, and tell what was lost."""

    minutes: float = 10
    """How long; each kind of fault comes at least once."""
    seed: int = 0
    """Seed of the faults."""
    out: Path | None = None
    """Write the table into this page too, such as docs/reliability.md."""
    only: str = ""
    """Only the faults whose names have these words in them."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault: what it does, once; and the share of the time that it gets."""

    name: str
    once: Callable[[Stage, Random], Tried]
    share: float = 1.0


FAULTS = (
    Fault("`train` killed (SIGKILL), then resumed", kill_training, 3),
    Fault("`train` asked to stop (SIGTERM, SIGHUP, SIGINT), then resumed", stop_training, 3),
    Fault("`evaluate`, `audit` or `report` killed, then given again", kill_verb, 3),
    Fault("the disk full, then not", fill_disk, 3),
    Fault("the run's folder removed, read-only or replaced by a file, then back", take_folder, 3),
    *(Fault(f"`{target.name}` corrupt", corrupt(target), 1.5) for target in TARGETS),
    Fault("the compiled routing in the cache corrupt", corrupt_library, 1.5),
    Fault("two trainings at once in one folder", train_twice, 2),
    Fault("the explorer under a crowd", crowd, 2),
)


def schedule(faults: tuple[Fault, ...], seconds: float, once: Callable[[Fault, int], Tried]) -> dict[str, list[Tried]]:
    """Each kind of fault once, and then, until the time is over, the one furthest behind its share of it."""
    tries: dict[str, list[Tried]] = {fault.name: [] for fault in faults}
    spent = dict.fromkeys(tries, 0.0)
    start = time.monotonic()
    while True:
        fault = min(faults, key=lambda one: (bool(tries[one.name]), spent[one.name] / one.share))
        began = time.monotonic()
        if tries[fault.name] and began - start >= seconds:
            return tries
        tries[fault.name].append(once(fault, len(tries[fault.name])))
        spent[fault.name] += time.monotonic() - began


def main(options: Options) -> int:
    faults = tuple(fault for fault in FAULTS if options.only in fault.name)
    if not faults:
        raise InputError(f"No fault is named {options.only!r}: the names are {', '.join(f.name for f in FAULTS)}.")
    if options.out is not None:
        check_page(options.out)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gammacaps-faults-", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder))

        def once(fault: Fault, number: int) -> Tried:
            tried = fault.once(stage, Random(f"{options.seed} {fault.name} {number}"))
            seconds, end = time.monotonic() - start, "; ".join(tried.lost) or ("taken" if tried.taken else "fine")
            print(f"{seconds:5.0f} s  {fault.name}: {tried.what}: {end}", file=sys.stderr, flush=True)
            return tried

        tries = schedule(faults, 60 * options.minutes - (time.monotonic() - start), once)
    only = f" --only '{options.only}'" if options.only else ""
    given = f"--minutes {options.minutes:g} --seed {options.seed}{only}"
    parts = [about(given, time.monotonic() - start), table(tries), losses(tries)]
    print("\n\n".join(parts))
    if options.out is not None:
        write_page(options.out, parts)
    return int(any(one.lost for tried in tries.values() for one in tried))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started and mounted is cleaned up
    try:
        sys.exit(main(tyro.cli(Options, description=__doc__)))
    except InputError as error:
        sys.exit(str(error))
