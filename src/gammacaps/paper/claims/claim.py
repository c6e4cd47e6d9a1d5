"""What a claim is, and how one is judged on several data sets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gammacaps.paper.plan import DATA, JUDGED, name_of
from gammacaps.paper.readings import NOT_YET, Records
from gammacaps.paper.record import Record

ON_BOTH = "judged on " + " and ".join(DATA[data] for data in JUDGED)
RuleOrSeed = str | tuple[str, int]  # a rule of the first seed, or a rule and its seed


@dataclass(frozen=True)
class Verdict:
    """What the figures say of a claim."""

    on: Mapping[str, bool | None]  # whether it held on each data set that it is judged on; None: it can't be told yet
    sentences: tuple[str, ...] = ()  # one for each data set or network

    @property
    def held(self) -> bool | None:
        """Whether it held on all of them."""
        return together(self.on.values())


@dataclass(frozen=True)
class Claim:
    """Something that the paper says: where, which runs can tell whether it holds, and how these are judged."""

    name: str  # its function's
    title: str
    said: str  # the paper's sentence, and in brackets what counts as its holding here
    where: str  # the paper's table or figure, as `gammacaps reproduce` names it
    runs: tuple[str, ...]  # all that it looks at
    judge: Callable[[Records], Verdict]  # is given those of the runs that there are

    def judged(self, records: Records) -> Verdict:
        return self.judge({name: records[name] for name in self.runs if name in records})


def claim(title: str, said: str, *, where: str, runs: Iterable[str]) -> Callable[[Callable[[Records], Verdict]], Claim]:
    """Makes a claim of the function below it, which judges the claim's runs by name."""
    return lambda judge: Claim(judge.__name__, title, said, where, tuple(runs), judge)


def claim_of_each(
    title: str, said: str, *, where: str, of: Sequence[RuleOrSeed], kind: str
) -> Callable[[Callable[..., tuple[bool, str]]], Claim]:
    """Makes a claim of the function below it, which judges the runs of one kind of training on one data set.

    The function is given their records in the order of `of`; the claim must hold on each data set.
    """

    def of_function(judge: Callable[..., tuple[bool, str]]) -> Claim:
        def judge_each(records: Records) -> Verdict:
            return on_each(records, of, kind, judge)

        return Claim(judge.__name__, title, said, where, runs_of(of, kind), judge_each)

    return of_function


def runs_of(of: Iterable[RuleOrSeed], kind: str, *, on: Iterable[str] = DATA) -> tuple[str, ...]:
    """The names of these rules' runs of one kind of training on some data sets."""
    of = tuple(of)
    return tuple(_name(data, rule, kind) for data in on for rule in of)


def on_each(
    records: Records,
    of: Iterable[RuleOrSeed],
    kind: str,
    judge: Callable[..., tuple[bool, str]],
    *,
    on: Iterable[str] = DATA,
) -> Verdict:
    """A verdict on what must hold of these runs on each of these data sets."""
    of = tuple(of)
    sentences: list[str] = []
    held: dict[str, bool | None] = {}
    for data in on:
        runs = [records.get(_name(data, rule, kind)) for rule in of]
        if any(run is None for run in runs):
            held[data] = None
            sentences.append(f"{DATA[data]}: {NOT_YET}")
            continue
        here, words = judge(*runs)
        held[data] = here
        sentences.append(f"{DATA[data]}{mark(here)}: {words}")
    return verdict(held, sentences)


def on_one(data: str, held: bool | None, *sentences: str) -> Verdict:
    """A verdict on what is about one data set."""
    return Verdict({data: held}, sentences)


def verdict(held: Mapping[str, bool | None], sentences: Sequence[str]) -> Verdict:
    """A verdict from what each data set says; it has no sentences where none was run."""
    return Verdict(held, tuple(sentences) if any(one is not None for one in held.values()) else ())


def together(held: Iterable[bool | None]) -> bool | None:
    """Whether all hold: one that does not decides, and where none does, one that was not run leaves it open."""
    seen = set(held)
    return False if False in seen else None if None in seen else True


def mark(held: bool) -> str:
    return "" if held else " (not)"


def after(record: Record) -> str:
    """How long a network was trained, and how."""
    return f"after {record.steps:,} steps {'under attack' if record.figures['train']['robust'] else 'on clean images'}"


def _name(data: str, rule: RuleOrSeed, kind: str) -> str:
    return name_of(data, rule, kind) if isinstance(rule, str) else name_of(data, rule[0], kind, rule[1])
