"""Files of a run are cut short, have bits flipped or blocks zeroed, are emptied or deleted; then a command reads them.

What is under a checksum must be noticed. What is not (plain files that people may edit, and weights that other
programs write) may hold another value that makes sense: that is counted as taken.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.faults.judge import Tried, ended_badly, leftovers, out_of_order, rows_of
from benchmarks.faults.stage import RUN, Stage, weights_wrong


@dataclass(frozen=True)
class Target:
    """A file of a run, the commands that read it or lie beside it, and whether it is under a checksum."""

    name: str
    pattern: str
    commands: tuple[str, ...]
    checked: bool = False


TARGETS = (
    Target("config.json", "config.json", ("evaluate", "audit", "report", "resume")),
    Target("model.safetensors", "model.safetensors", ("evaluate", "audit", "report")),
    Target("checkpoint.safetensors", "checkpoint.safetensors", ("resume",), checked=True),
    Target("metrics.jsonl", "metrics.jsonl", ("resume", "report", "evaluate")),
    Target("results.json", "results.json", ("report", "evaluate")),
    Target("audit.json", "audit.json", ("report", "audit")),
    Target("evaluation/*.json", "evaluation/*.json", ("evaluate",), checked=True),
)
REWRITES = {"results.json": "evaluate", "audit.json": "audit"}  # whatever was there, these must be right


def cut(content: bytes, chance: Random) -> bytes:
    return content[: chance.randrange(max(1, len(content)))]


def flip(content: bytes, chance: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def zero(content: bytes, chance: Random) -> bytes:
    size = min(len(content), chance.choice((16, 512, 4096)))
    start = chance.randrange(len(content) - size + 1)
    return content[:start] + bytes(size) + content[start + size :]


DAMAGES: dict[str, Callable[[bytes, Random], bytes | None]] = {
    "cut short": cut,
    "with bits flipped": flip,
    "with a block zeroed": zero,
    "emptied": lambda content, chance: b"",
    "deleted": lambda content, chance: None,
}


def damage(path: Path, chance: Random) -> str:
    """Damages a file, and says how."""
    how = chance.choice(list(DAMAGES))
    changed = DAMAGES[how](path.read_bytes(), chance)
    if changed is None:
        path.unlink()
    else:
        path.write_bytes(changed)
    return how


def corrupt(target: Target) -> Callable[[Stage, Random], Tried]:
    """The fault of a damaged file: the right answer or one sentence must follow."""

    def once(stage: Stage, chance: Random) -> Tried:
        name = chance.choice(target.commands)
        kind = stage.kind_for(name)
        assert kind is not None
        with stage.place(kind) as here:
            path = chance.choice(sorted((here / RUN).glob(target.pattern)))
            how = damage(path, chance)
            ran = stage.run(name, here)
            lost = ended_badly(ran)
            wrong = stage.wrong(name, here) if ran.status == 0 else []
            strict = target.checked or REWRITES.get(target.name) == name
            if target.name == "metrics.jsonl" and name == "resume" and ran.status == 0:
                lost += weights_wrong(here / RUN, stage.seeds[0][0]) + out_of_order(rows_of(here / RUN / target.name))
            lost += wrong if strict else []
            lost += leftovers(here / RUN, here / RUN / "evaluation")
        what = f"{path.name} {how}, then {name}, which {'went on' if ran.status == 0 else 'did not go on'}"
        # Where nothing is left of the file there is nothing to be wrong about: a report then has less to show.
        return Tried(what, tuple(lost), taken=bool(wrong) and not lost and how not in ("deleted", "emptied"))

    return once


def corrupt_library(stage: Stage, chance: Random) -> Tried:
    """The compiled routing in the cache: it is made again, and the answer is the right one."""
    with stage.place(stage.whole, without="evaluate") as here:
        cache = here / "cache"
        shutil.copytree(stage.cache, cache)
        files = sorted(path for path in (cache / "gammacaps" / "native").iterdir() if path.is_file())
        path = chance.choice(files)
        how = damage(path, chance)
        ran = stage.run("evaluate", here, cache=cache)
        lost = ended_badly(ran) or stage.wrong("evaluate", here)
        for file in files:
            good = stage.cache / file.relative_to(cache)
            if not file.is_file() or file.read_bytes() != good.read_bytes():
                lost.append(f"{file.name} was not made again")
    return Tried(f"{path.name} {how}", tuple(lost))
