"""Is SDA more robust than RBA, and by how much? The first thing that the page says."""

from dataclasses import dataclass

from gammacaps.evaluation.paired import Difference
from gammacaps.paper.claims.claim import seeds_of
from gammacaps.paper.plan import DATA, SEEDS
from gammacaps.paper.readings import Records, difference, full_steps

QUESTION = "Is SDA more robust than RBA, and by how much?"
COMPARED = "SDA less RBA in the worst case, both trained under the same attack, with 95% intervals"


@dataclass(frozen=True)
class Compared:
    """SDA less RBA on one data set."""

    data: str
    eps: float
    gap: Difference
    steps: int  # of the shorter training


@dataclass(frozen=True)
class Answer:
    """In one sentence, then data set by data set, then what to keep in mind."""

    short: str
    rows: tuple[Compared, ...]
    caveat: str

    def lines(self) -> list[str]:
        return [
            f"{DATA[row.data]}, eps {row.eps:g}: {row.gap.words()}"
            + (f"; seed by seed {row.gap.spread()}" if row.gap.spread() else "")
            for row in self.rows
        ]


def answer(records: Records) -> Answer:
    """By the worst case at the radius of training, both trained under the same attack."""
    rows, caveats = [], []
    for data in DATA:
        sda, rba = (seeds_of(records, data, rule, "robust") for rule in ("sda", "rba"))
        if not sda or not rba:
            continue
        eps = sda[0].figures["train"]["eps"]
        both = [[one for one in side if one.worst(eps) is not None] for side in (sda, rba)]
        if not all(both):
            continue
        there = [*both[0], *both[1]]
        least = min(there, key=lambda record: record.steps)
        rows.append(Compared(data, eps, difference(both[0], both[1], "worst", eps), least.steps))
        if least.steps < full_steps(least):
            caveats.append(f"trainings of {least.steps:,} steps where the paper's took {full_steps(least):,}")
        if min(map(len, both)) < len(SEEDS):
            caveats.append("one seed")
        if not rows[-1].gap.paired:
            caveats.append("intervals that do not pair the images, and so are wider than they need be")
    return Answer(_short(rows), tuple(rows), _caveat(caveats))


def _short(rows: list[Compared]) -> str:
    if not rows:
        return "It can't be told yet: no pair of networks was measured in the worst case."
    more, less = ([DATA[row.data] for row in rows if sign * row.gap.value > 0 and _clear(row.gap)] for sign in (1, -1))
    open_ = [DATA[row.data] for row in rows if not _clear(row.gap)]
    if len(open_) == len(rows):
        return f"No difference is clear on {_listed(open_)}: every interval holds 0."
    parts = [f"more on {_listed(more)}"] if more else []
    parts += [f"less on {_listed(less)}"] if less else []
    parts += [f"not clearly different on {_listed(open_)}"] if open_ else []
    return f"SDA is {', '.join(parts)}."


def _clear(gap: Difference) -> bool:
    return not gap.low <= 0 <= gap.high


def _caveat(caveats: list[str]) -> str:
    words = list(dict.fromkeys(caveats))
    return f"So far this rests on {_listed(words)}." if words else ""


def _listed(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
