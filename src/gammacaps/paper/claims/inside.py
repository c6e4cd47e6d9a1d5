"""Claims about what is seen inside: shirts, the class for none of the above, generated inputs, filters."""

from collections import Counter

from gammacaps.paper.claims.claim import (
    ON_BOTH,
    Claim,
    Finding,
    Verdict,
    after,
    by_seeds,
    claim_of_each,
    joined,
    runs_of,
    seeds_of,
    verdict,
)
from gammacaps.paper.expected import expected
from gammacaps.paper.plan import JUDGED, SHOWN
from gammacaps.paper.readings import NOT_YET, SHIRT, Records, right, strongest
from gammacaps.paper.record import Record

NO_SHIRT, SOME_SHIRTS = 0.01, 0.05  # shares of shirts that count as none, and as learned
FULL = 0.99  # the length of all of RBA's class capsules in the paper, to two decimals
SNEAKER = 7
NAMED = expected()["hidden"]  # the hidden capsules that the paper names
Seeds = list[Record]


@claim_of_each(
    "Shirts learned late",
    "After 5,000 steps no shirt is right, by 15,000 features of shirts are learned (Table 3)",
    rule=f"Held where of every seed fewer than {NO_SHIRT:.0%} of the shirts are right after 5,000 steps and more than "
    f"{SOME_SHIRTS:.0%} at the end; did not hold where that is so of none.",
    where="confusion",
    of=("sda",),
    kind="long",
    on=(SHOWN,),
)
def shirt(sda: Seeds) -> Finding:
    seeds = [one for one in sda if one.earlier]
    if not seeds:
        return Finding(None, NOT_YET, NOT_YET)
    paper, cells, held = expected()["activations"]["rows"][SHIRT], [], []
    for record in seeds:
        first = record.earlier[0]
        early, late = right(first, SHIRT), right(record, SHIRT)
        lengths = [_lengths(one)[SHIRT] for one in (first, record)]
        held.append(early < NO_SHIRT and late > SOME_SHIRTS)
        cells.append(
            f"{early:.1%} of them are right after {first.steps:,} steps, {late:.1%} after {record.steps:,}; the input "
            f"that is generated for the class makes its capsule {lengths[0]:.2f} and then {lengths[1]:.2f} long, in "
            f"the paper {paper[0]:.2f} and {paper[1]:.2f}"
        )
    return by_seeds(held, "; ".join(cells))


@claim_of_each(
    "Sneaker for none of the above",
    "After 15,000 steps the class sneaker stands for none of the above",
    rule="Held where for every seed it takes at least half of the images that show nothing, in at least two thirds of "
    "their kinds; did not hold where it does for none.",
    where="features",
    of=("sda",),
    kind="long",
    on=(SHOWN,),
)
def sneakers(sda: Seeds) -> Finding:
    cells = [f"after {one.steps:,} steps: {one.figures['nothing']['meaning'].rstrip('.')}" for one in sda]
    return by_seeds([SNEAKER in one.figures["nothing"]["classes"] for one in sda], "; ".join(cells))


def _careful(records: Records) -> Verdict:
    sda, rba = seeds_of(records, SHOWN, "sda", "long"), seeds_of(records, SHOWN, "rba", "standard")
    if not sda or not rba:
        return verdict({SHOWN: Finding(None, NOT_YET, NOT_YET)})
    held, cells = [], []
    for mine, theirs in zip(sda, rba, strict=False):
        shorter = [a < b for a, b in zip(_lengths(mine), _lengths(theirs), strict=True)]
        held.append(all(shorter))
        cells.append(
            f"SDA's are {_span(mine)} long {after(mine)}, RBA's {_span(theirs)} {after(theirs)}; {sum(shorter)} of "
            f"{len(shorter)} of SDA's are shorter"
        )
    return verdict({SHOWN: by_seeds(held, "; ".join(cells))})


careful = Claim(
    "careful",
    "SDA less certain than RBA",
    "By inputs generated for them SDA's class capsules become shorter than RBA's (activations)",
    "Held where, seed by seed, each of SDA's is shorter than RBA's; did not hold where that is so of no seed.",
    "activations",
    (*runs_of(("sda",), "long", on=(SHOWN,)), *runs_of(("rba",), "standard", on=(SHOWN,))),
    _careful,
)


@claim_of_each(
    "RBA certain of every class",
    f"By inputs generated for them RBA's class capsules all reach {FULL:g}, to two decimals (activations)",
    rule=f"Held where all of every seed reach {FULL:g}, rounded; did not hold where those of no seed do.",
    where="activations",
    of=("rba",),
    kind="standard",
    on=(SHOWN,),
)
def certain(rba: Seeds) -> Finding:
    cells = [f"they are {_span(one)} long {after(one)}" for one in rba]
    return by_seeds([round(min(_lengths(one)), 2) >= FULL for one in rba], "; ".join(cells))


@claim_of_each(
    "Hidden capsules that can be named",
    f"Hidden capsules stand for things that can be named (the paper names {len(NAMED)}, each of another class)",
    rule=f"Held where the inputs generated for hidden capsules activate {len(NAMED)} different classes most, or more, "
    "for every seed; did not hold where they do for none.",
    where="hidden",
    of=("sda",),
    kind="long",
    on=(SHOWN,),
)
def hidden_classes(sda: Seeds) -> Finding:
    cells = []
    for record in sda:
        counts = ", ".join(f"{name} by {count}" for name, count in _classes(record).most_common())
        before = [f", {len(_classes(one))} {after(one)}" for one in record.earlier]
        cells.append(f"{len(_classes(record))} {after(record)} ({counts}){''.join(before)}")
    return by_seeds([len(_classes(one)) >= len(NAMED) for one in sda], "; ".join(cells))


def _concentrated(records: Records) -> Verdict:
    findings = {}
    for data in JUDGED:
        attacked = {rule: seeds_of(records, data, rule, "robust") for rule in ("sda", "cnn")}
        clean = seeds_of(records, data, "sda", "standard")
        if not all(attacked.values()) or not clean:
            findings[data] = Finding(None, NOT_YET, NOT_YET)
            continue
        most = max(_share(one) for one in clean)
        parts = [by_seeds([_share(one) > most for one in seeds], "") for seeds in attacked.values()]
        sda, cnn, without = (
            " and ".join(f"{_share(one):.1%}" for one in seeds) for seeds in (*attacked.values(), clean)
        )
        how = [after(seeds[0]) for seeds in (attacked["sda"], clean)]
        findings[data] = joined(parts, f"SDA {sda} and the CNN {cnn} {how[0]}, SDA {without} {how[1]}")
    return verdict(findings)


concentrated = Claim(
    "concentrated",
    "Filters concentrated by attack",
    f"Under attack SDA's first filters become more concentrated than without, and so do a CNN's, {ON_BOTH} (filters)",
    "Held where the largest tenth of a filter's weights holds more of its absolute weight for every seed of both than "
    "in SDA's of clean training; did not hold where it does for no seed of one.",
    "filters",
    (*runs_of(("sda", "cnn"), "robust", on=JUDGED), *runs_of(("sda",), "standard", on=JUDGED)),
    _concentrated,
)

CLAIMS = (shirt, sneakers, careful, certain, hidden_classes, concentrated)


def _share(record: Record) -> float:
    return float(record.figures["filters"]["largest_tenth"])


def _classes(record: Record) -> Counter[str]:
    """How many hidden capsules' generated inputs activate each class most."""
    names = record.figures["results"]["class_names"]
    scores = [one["scores"] for one in record.figures["generated"]["hidden"]]
    return Counter(names[strongest(row)] for row in scores)


def _lengths(record: Record) -> list[float]:
    return [one["activation"] for one in record.figures["generated"]["class"]]


def _span(record: Record) -> str:
    lengths = _lengths(record)
    return f"{min(lengths):.2f} to {max(lengths):.2f}"
