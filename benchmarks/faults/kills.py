"""Signals: a training is killed or asked to stop and resumed; other commands are killed and given again."""

import signal
from collections.abc import Sequence
from random import Random

from benchmarks.faults.judge import Ran, Tried, ended_badly, leftovers, rows_of
from benchmarks.faults.stage import RUN, STEPS, VERBS, Stage, wait_for_moment

SOFT = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def kill_training(stage: Stage, chance: Random) -> Tried:
    return _break_training(stage, chance, (signal.SIGKILL,))


def stop_training(stage: Stage, chance: Random) -> Tried:
    return _break_training(stage, chance, SOFT)


def _break_training(stage: Stage, chance: Random, signals: Sequence[signal.Signals]) -> Tried:
    """Up to three signals, each at a moment of its own, and then to the end."""
    done: list[str] = []
    lost: list[str] = []
    stops = 0
    with stage.place() as here:
        for _ in range(chance.randint(1, 3)):
            number = chance.choice(signals)
            command = stage.start("resume" if (here / RUN / "config.json").exists() else "train", here)
            # Any Python program is noisy when it is interrupted while it starts, so that comes by SIGKILL alone.
            wait_for_moment(stage, command, here, chance, from_start=number == signal.SIGKILL)
            if command.running():
                command.signal(number)
            ran = command.ended()
            rows = rows_of(here / RUN / "metrics.jsonl")
            if ran.sent is not None:
                done.append(f"{number.name} after {len(rows)} lines")
            lost += ended_badly(ran) + _unsaved(ran, rows)
            stops += int(ran.sent in SOFT)
            if ran.status == 0:
                break
        else:
            lost += _ended_unfinished(stage.finish(here))
        lost += stage.wrong("train", here, stops=stops) + leftovers(here / RUN)
    # Where the training was faster there was no fault: another one then.
    return Tried(", ".join(done), tuple(lost)) if done or lost else _break_training(stage, chance, signals)


def _ended_unfinished(ran: Ran) -> list[str]:
    """A resume succeeds; one that finds the run finished may say so."""
    finished = ran.status == 2 and "is finished" in (ran.sentence() or "")
    return ended_badly(ran) if ran.status == 0 or finished else [f"resume: {ran.errors.strip()[-160:]}"]


def _unsaved(ran: Ran, rows: list[object]) -> list[str]:
    """A training that is asked to stop saves first, unless it was not yet or no longer at work."""
    last = rows[-1] if rows else None
    at_work = isinstance(last, dict) and last.get("step") != STEPS
    if ran.sent in SOFT and at_work and ran.status == -ran.sent:
        return [f"{signal.Signals(ran.sent).name} ended {ran.command}, and nothing was saved"]
    return []


def kill_verb(stage: Stage, chance: Random) -> Tried:
    """An evaluation, audit or report is killed once or twice, and the same command is given again."""
    verb, killed = chance.choice(VERBS), 0
    lost: list[str] = []
    with stage.place(stage.whole, without=verb) as here:
        for _ in range(chance.randint(1, 2)):
            command = stage.start(verb, here)
            wait_for_moment(stage, command, here, chance)
            if command.running():
                command.signal(signal.SIGKILL)
                killed += 1
            lost += ended_badly(command.ended())
        again = stage.run(verb, here)
        lost += ended_badly(again) if again.status == 0 else [f"{verb} again: {again.errors.strip()[-160:]}"]
        lost += stage.wrong(verb, here) + stage.wrong("train", here)
        lost += leftovers(here / RUN, here / RUN / "evaluation")
    return Tried(f"{verb} killed {killed} times", tuple(lost)) if killed or lost else kill_verb(stage, chance)
