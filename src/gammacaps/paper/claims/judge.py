"""What a claim is, and how it is judged on several data sets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gammacaps.paper.parts.cells import Found
from gammacaps.paper.plan import DATA, PALE, name_of
from gammacaps.paper.record import Record

JUDGED = tuple(data for data in DATA if data != PALE)  # under attack ours are not trained at the paper's radius there
ON_BOTH = "on " + " and ".join(DATA[data] for data in JUDGED)
Run = str | tuple[str, int]  # a rule of the first seed, or a rule and its seed


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what the figures say of it; `held` is None where runs are missing."""

    said: str
    held: bool | None
    found: str = ""


def on_each(
    said: str,
    found: Found,
    runs: Sequence[Run],
    kind: str,
    judge: Callable[..., tuple[bool, str]],
    *,
    on: Iterable[str] = DATA,
) -> Claim:
    """A claim about runs of one kind of training that must hold on each of these data sets."""
    cells: list[str] = []
    held: list[bool | None] = []
    for data in on:
        named = [(run, 0) if isinstance(run, str) else run for run in runs]
        records = [found.get(name_of(data, rule, kind, seed)) for rule, seed in named]
        if any(record is None for record in records):
            held.append(None)
            cells.append(f"{DATA[data]}: not run yet")
            continue
        here, words = judge(*records)
        held.append(here)
        cells.append(f"{DATA[data]}{mark(here)}: {words}")
    return verdict(said, held, cells)


def verdict(said: str, held: Sequence[bool | None], cells: Sequence[str]) -> Claim:
    """A claim from what each data set says of it; nothing is told where none was run."""
    return Claim(said, together(held), "; ".join(cells) if any(one is not None for one in held) else "")


def together(held: Sequence[bool | None]) -> bool | None:
    """Whether all hold: one that does not decides, and where none does, one that was not run leaves it open."""
    if any(one is False for one in held):
        return False
    return None if any(one is None for one in held) else True


def mark(held: bool) -> str:
    return "" if held else " (not)"


def after(record: Record) -> str:
    """How long a network was trained, and how."""
    return f"after {record.steps:,} steps {'under attack' if record.figures['train']['robust'] else 'on clean images'}"


def longest(found: Found, data: str) -> Record | None:
    """SDA under attack on a data set, the longest training that there is."""
    names = [name_of(data, "sda", kind) for kind in ("long", "robust")]
    return next((found[name] for name in names if name in found), None)
