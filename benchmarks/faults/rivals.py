"""Two trainings at once in one folder: one wins, the other gets one sentence, and the files are of the winner alone."""

import json
import time
from pathlib import Path
from random import Random

from benchmarks.faults.judge import Tried, ended_badly, leftovers
from benchmarks.faults.stage import RUN, Command, Stage

# The two commands, and whether they start from a broken run, from a whole one or from nothing.
PAIRS: tuple[tuple[str, str, str], ...] = (
    ("train", "train --seed 1", "nothing"),
    ("train", "train --overwrite", "nothing"),
    ("train --overwrite", "train --overwrite", "whole"),
    ("resume", "resume", "part"),
)


def train_twice(stage: Stage, chance: Random) -> Tried:
    first, second, kind = chance.choice(PAIRS)
    with stage.place({"nothing": None, "whole": stage.whole, "part": stage.part}[kind]) as here:
        commands = [stage.start(first, here)]
        time.sleep(chance.random() * 0.5)
        commands.append(stage.start(second, here))
        ends = wait_for_ends(commands)
        ran = [command.ended() for command in commands]
        lost = [words for one in ran for words in ended_badly(one)]
        won = [one for one in ran if one.status == 0]
        trained = [one for one in won if "step " in one.errors]  # a resume may find that all is done
        if len(trained) == 2 and not after_each_other(here / RUN / "config.json", min(ends)):
            lost.append("both trained")
        if not won:
            lost.append("neither training ended well")
        lost += wrong_mixture(stage, here) + leftovers(here, here / RUN)
    return Tried(f"{first} and {second} at once", tuple(lost))


def wait_for_ends(commands: list[Command]) -> list[float]:
    """When each of them ended, by the clock of files."""
    ends: dict[int, float] = {}
    limit = time.monotonic() + 300
    while len(ends) < len(commands) and time.monotonic() < limit:
        for place, command in enumerate(commands):
            if place not in ends and not command.running():
                ends[place] = time.time()
        time.sleep(0.01)
    return list(ends.values()) or [time.time()]


def after_each_other(config: Path, first_end: float) -> bool:
    """Whether the second began its run only when the first had ended, which it may."""
    return config.exists() and config.stat().st_mtime >= first_end


def wrong_mixture(stage: Stage, folder: Path) -> list[str]:
    """The config says by its seed whose run it is: weights and metrics must be of that one."""
    try:
        seed = json.loads((folder / RUN / "config.json").read_bytes())["train"]["seed"]
    except (OSError, ValueError, KeyError, TypeError):
        return ["config.json is not whole"]
    return [f"{words} from those of its config.json" for words in stage.wrong("train", folder, seed=seed)]
