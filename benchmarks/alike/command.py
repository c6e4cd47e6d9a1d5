"""Networks trained alike, measured alike: routing by SDA and RBA, a CNN, with and without the gamma objective.

One line of JSON a network goes to --out; what is there already is not made again. Then come three tables: what the
gamma objective is worth, what capsules cost or gain, and what else the networks withstand.
"""

import json
import sys
import time
from typing import Any

import tyro

from benchmarks.alike.measure import made
from benchmarks.alike.options import Options
from benchmarks.alike.planned import Planned, cost, own_share
from benchmarks.alike.tables import tables
from benchmarks.rows import read_rows
from gammacaps.errors import InputError
from gammacaps.files import append_line
from gammacaps.memory import reuse_memory
from gammacaps.progress import say


def missing(options: Options, rows: list[dict[str, Any]]) -> list[Planned]:
    """The networks of this process's share that are not in the file."""
    return [one for one in own_share(options) if not any(one.asked(options).items() <= row.items() for row in rows)]


def run(options: Options) -> bool:
    """Makes what is missing; whether none failed."""
    started, failed = time.monotonic(), 0
    todo = missing(options, read_rows(options.out))
    for done, one in enumerate(todo):
        if options.minutes is not None and time.monotonic() - started >= 60 * options.minutes:
            left = len(todo) - done
            words, them = ("1 network is", "it") if left == 1 else (f"{left} networks are", "them")
            say(f"Time is over: {words} left. The same command goes on with {them}.")
            break
        try:
            row = made(one, options)
        except InputError as error:
            say(f"{one.name}: {error}")
            failed += 1
            continue
        append_line(options.out, json.dumps(row))  # in one piece, so that several processes may share the file
        say(f"{one.name}: {row['seconds']['training']:.0f} s of training, {row['seconds']['measuring']:.0f} s measured")
    return not failed


def listed(options: Options) -> str:
    """The networks of this share, and which of them are there."""
    own, left = own_share(options), missing(options, read_rows(options.out))
    whole, rest = (sum(cost(one, options) for one in several) for several in (own, left))
    lines = [f"{one.name:<60}{'' if one in left else '  done'}".rstrip() for one in own]
    of_work = f": {rest / whole:.0%} of the work" if left else ""
    networks = "1 network" if len(own) == 1 else f"{len(own)} networks"
    return "\n".join([*lines, f"{networks}, {len(left)} left{of_work}."])


def main() -> None:
    try:
        options = tyro.cli(Options, prog="python -m benchmarks.alike", description=__doc__).checked()
        if options.dry_run:
            print(listed(options))
            sys.exit(0)
        reuse_memory()
        well = options.tables or run(options)
        if options.tables or options.share is None:
            print(tables(read_rows(options.out)))
    except InputError as error:
        sys.exit(str(error))
    except KeyboardInterrupt as asked:
        say(str(asked) or "Stopped: the same command goes on.")
        sys.exit(130)
    sys.exit(0 if well else 1)
