"""What a claim is, how one is judged on several data sets, and what stands against calling it told."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gammacaps.paper.plan import DATA, JUDGED, SEEDS, name_of
from gammacaps.paper.readings import NOT_YET, Records, full_steps
from gammacaps.paper.record import Record

ON_BOTH = "judged on " + " and ".join(DATA[data] for data in JUDGED)
DISAGREE = "the seeds disagree"
BOTH_WAYS = "the interval leaves both possible"


class Finding(NamedTuple):
    """What the figures on one data set say: for the claim, against it, or (None) neither, and then why."""

    says: bool | None
    words: str
    why: str = ""


Judge = Callable[..., Finding]  # is given a list of records for each rule, one a seed


@dataclass(frozen=True)
class Verdict:
    """What the figures say of a claim, and what keeps that from being the last word."""

    says: Mapping[str, bool | None]  # on each data set that it is judged on, by the networks that there are
    sentences: tuple[str, ...] = ()  # one for each data set or network
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # why it can't be told on a data set

    @property
    def on(self) -> dict[str, bool | None]:
        """Whether it held on each data set; None where it can't be told."""
        return {data: None if self.reasons.get(data) else says for data, says in self.says.items()}

    @property
    def held(self) -> bool | None:
        """Whether it held on all of them."""
        return together(self.on.values())

    @property
    def leaning(self) -> bool | None:
        """What the networks that there are say, whatever stands against it."""
        return together(self.says.values())

    @property
    def why(self) -> tuple[str, ...]:
        """All reasons, each once."""
        return tuple(dict.fromkeys(reason for reasons in self.reasons.values() for reason in reasons))


@dataclass(frozen=True)
class Claim:
    """Something that the paper says: where, which runs can tell whether it holds, and how these are judged."""

    name: str  # its function's
    title: str
    said: str  # the paper's sentence
    rule: str  # in one sentence, what counts as its holding here
    where: str  # the paper's table or figure, as `gammacaps reproduce` names it
    runs: tuple[str, ...]  # all that it looks at
    judge: Callable[[Records], Verdict]  # is given those of the runs that there are
    by_bits: bool = False  # whether it hangs on differences image by image

    def judged(self, records: Records) -> Verdict:
        mine = {name: records[name] for name in self.runs if name in records}
        found = self.judge(mine)
        reasons = {}
        for data in found.says:
            lacking = self._lacking(mine, data)
            if NOT_YET not in lacking:
                lacking += tuple(why for why in found.reasons.get(data, ()) if why not in lacking)
            reasons[data] = lacking
        return replace(found, reasons=reasons)

    def _lacking(self, records: Records, data: str) -> tuple[str, ...]:
        """What the runs of a data set lack: they are not there, too short, of one seed, or without bits."""
        names = [name for name in self.runs if name.startswith(f"{data}-")]
        there = [records[name] for name in names if name in records]
        absent = [name for name in names if name not in records]
        if any(not any(f"{name[:-1]}{seed}" in records for seed in SEEDS) for name in absent):
            return (NOT_YET,)
        reasons = []
        short = [record for record in there if record.steps < full_steps(record)]
        if short:
            least = min(short, key=lambda record: record.steps)
            reasons.append(f"too short a training ({least.steps:,} of {full_steps(least):,} steps)")
        reasons += ["one seed"] if absent else []
        reasons += ["no bits kept"] if self.by_bits and not all(record.has_bits for record in there) else []
        return tuple(reasons)


def claim(
    title: str, said: str, *, rule: str, where: str, runs: Iterable[str], by_bits: bool = False
) -> Callable[[Callable[[Records], Verdict]], Claim]:
    """Makes a claim of the function below it, which judges the claim's runs by name."""
    return lambda judge: Claim(judge.__name__, title, said, rule, where, tuple(runs), judge, by_bits)


def claim_of_each(
    title: str,
    said: str,
    *,
    rule: str,
    where: str,
    of: Sequence[str],
    kind: str,
    on: Sequence[str] = tuple(DATA),
    by_bits: bool = False,
) -> Callable[[Judge], Claim]:
    """Makes a claim of the function below it, which judges the runs of one kind of training on one data set.

    The function is given their records in the order of `of`, a list of seeds each; the claim must hold on each data
    set.
    """

    def of_function(judge: Judge) -> Claim:
        def judge_each(records: Records) -> Verdict:
            return on_each(records, of, kind, judge, on=on)

        runs = runs_of(of, kind, on=on)
        return Claim(judge.__name__, title, said, rule, where, runs, judge_each, by_bits)

    return of_function


def runs_of(of: Iterable[str], kind: str, *, on: Iterable[str] = DATA) -> tuple[str, ...]:
    """The names of these rules' runs of one kind of training on some data sets, of all seeds."""
    of = tuple(of)
    return tuple(name_of(data, rule, kind, seed) for data in on for rule in of for seed in SEEDS)


def seeds_of(records: Records, data: str, rule: str, kind: str) -> list[Record]:
    """A network's records, one a seed, as far as there are."""
    names = [name_of(data, rule, kind, seed) for seed in SEEDS]
    return [records[name] for name in names if name in records]


def on_each(records: Records, of: Iterable[str], kind: str, judge: Judge, *, on: Iterable[str] = DATA) -> Verdict:
    """A verdict on what must hold of these runs on each of these data sets."""
    of, findings = tuple(of), {}
    for data in on:
        networks = [seeds_of(records, data, rule, kind) for rule in of]
        findings[data] = judge(*networks) if all(networks) else Finding(None, NOT_YET, NOT_YET)
    return verdict(findings)


def verdict(findings: Mapping[str, Finding]) -> Verdict:
    """A verdict from what each data set says; it has no sentences where none was run."""
    sentences = tuple(f"{DATA[data]}{mark(found.says)}: {found.words}" for data, found in findings.items())
    some = any(found.why != NOT_YET for found in findings.values())
    reasons = {data: (found.why,) if found.why else () for data, found in findings.items()}
    return Verdict({data: found.says for data, found in findings.items()}, sentences if some else (), reasons)


def together(held: Iterable[bool | None]) -> bool | None:
    """Whether all hold: one that does not decides, and where none does, one that can't be told leaves it open."""
    seen = set(held)
    return False if False in seen else None if None in seen or not seen else True


def by_seeds(each: Sequence[bool], words: str) -> Finding:
    """For the claim where every seed is, against it where none is; else it can't be told."""
    if all(each):
        return Finding(True, words)
    return Finding(None, words, DISAGREE) if any(each) else Finding(False, words)


def joined(parts: Sequence[Finding], words: str) -> Finding:
    """What several findings say that must all be for the claim."""
    says = together(part.says for part in parts)
    why = next((part.why for part in parts if part.says is None), "") if says is None else ""
    return Finding(says, words, why)


def mark(says: bool | None) -> str:
    return {True: "", False: " (not)", None: " (open)"}[says]


def after(record: Record) -> str:
    """How long a network was trained, and how."""
    return f"after {record.steps:,} steps {'under attack' if record.figures['train']['robust'] else 'on clean images'}"
