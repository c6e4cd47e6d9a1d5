"""What a claim is, and how it is judged on several data sets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gammacaps.paper.parts.cells import NOT_YET, Found
from gammacaps.paper.plan import DATA, JUDGED, name_of
from gammacaps.paper.record import Record

ON_BOTH = "judged on " + " and ".join(DATA[data] for data in JUDGED)
Run = str | tuple[str, int]  # a rule of the first seed, or a rule and its seed


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what the figures say of it."""

    said: str
    found: tuple[str, ...]  # one sentence for each data set or network
    on: Mapping[str, bool | None]  # whether it held on each data set that it is judged on; None: it can't be told yet

    @property
    def held(self) -> bool | None:
        """Whether it held on all of them."""
        return together(self.on.values())


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
    held: dict[str, bool | None] = {}
    for data in on:
        named = [(run, 0) if isinstance(run, str) else run for run in runs]
        records = [found.get(name_of(data, rule, kind, seed)) for rule, seed in named]
        if any(record is None for record in records):
            held[data] = None
            cells.append(f"{DATA[data]}: {NOT_YET}")
            continue
        here, words = judge(*records)
        held[data] = here
        cells.append(f"{DATA[data]}{mark(here)}: {words}")
    return verdict(said, held, cells)


def on_one(said: str, data: str, held: bool | None, *cells: str) -> Claim:
    """A claim about one data set."""
    return Claim(said, cells, {data: held})


def verdict(said: str, held: Mapping[str, bool | None], cells: Sequence[str]) -> Claim:
    """A claim from what each data set says of it; nothing is told where none was run."""
    told = tuple(cells) if any(one is not None for one in held.values()) else ()
    return Claim(said, told, held)


def together(held: Iterable[bool | None]) -> bool | None:
    """Whether all hold: one that does not decides, and where none does, one that was not run leaves it open."""
    seen = set(held)
    return False if False in seen else None if None in seen else True


def mark(held: bool) -> str:
    return "" if held else " (not)"


def after(record: Record) -> str:
    """How long a network was trained, and how."""
    return f"after {record.steps:,} steps {'under attack' if record.figures['train']['robust'] else 'on clean images'}"


def longest(found: Found, data: str) -> Record | None:
    """SDA under attack on a data set, the longest training that there is."""
    names = [name_of(data, "sda", kind) for kind in ("long", "robust")]
    return next((found[name] for name in names if name in found), None)
