"""Claims about what is seen inside: shirts, the class for none of the above, generated inputs, filters."""

from collections import Counter

from gammacaps.paper.claims.judge import ON_BOTH, Claim, after, mark, on_one, verdict
from gammacaps.paper.expected import expected
from gammacaps.paper.parts.cells import Found
from gammacaps.paper.parts.confusion import SHIRT, right
from gammacaps.paper.parts.hidden import strongest
from gammacaps.paper.plan import DATA, JUDGED, PARTS, RULES, SHOWN, name_of
from gammacaps.paper.record import Record

NO_SHIRT, SOME_SHIRTS = 0.01, 0.05  # shares of shirts that count as none, and as learned
FULL = 0.99  # the length of all of RBA's class capsules in the paper, to two decimals
PAPER_STEPS = 15_000  # after which the paper tells it
SNEAKER = 7


def shirt(found: Found) -> Claim:
    said = (
        "After 5,000 steps no shirt is right (here: fewer than "
        f"{NO_SHIRT:.0%}), by 15,000 features of shirts are learned (here, as a stand-in: more than {SOME_SHIRTS:.0%} "
        "of them are right; Table 3)"
    )
    record = found.get(PARTS["confusion"][0])
    if record is None or not record.earlier:
        return on_one(said, SHOWN, None)
    first = record.earlier[0]
    early, late = right(first, SHIRT), right(record, SHIRT)
    lengths = [_lengths(one)[SHIRT] for one in (first, record)]
    paper = expected()["activations"]["rows"][SHIRT]
    told = (
        f"{early:.1%} of them are right after {first.steps:,} steps, {late:.1%} after {record.steps:,}; the input that "
        f"is generated for the class makes its capsule {lengths[0]:.2f} and then {lengths[1]:.2f} long, in the paper "
        f"{paper[0]:.2f} and {paper[1]:.2f}"
    )
    return on_one(said, SHOWN, early < NO_SHIRT and late > SOME_SHIRTS, told)


def sneakers(found: Found) -> Claim:
    said = (
        "After 15,000 steps the class sneaker stands for none of the above (here: it takes at least half of the images "
        "that show nothing, in at least two thirds of their kinds)"
    )
    record = found.get(PARTS["features"][0])
    if record is None:
        return on_one(said, SHOWN, None)
    nothing = record.figures["nothing"]
    told = f"after {record.steps:,} steps: {nothing['meaning'].rstrip('.')}"
    return on_one(said, SHOWN, SNEAKER in nothing["classes"], told)


def careful(found: Found) -> Claim:
    said = (
        "By inputs generated for them SDA's class capsules become shorter than RBA's (activations; here: each of them)"
    )
    sda, rba = (found.get(name) for name in PARTS["activations"])
    if sda is None or rba is None:
        return on_one(said, SHOWN, None)
    shorter = [mine < theirs for mine, theirs in zip(_lengths(sda), _lengths(rba), strict=True)]
    told = (
        f"SDA's are {_span(sda)} long {after(sda)}, RBA's {_span(rba)} {after(rba)}; {sum(shorter)} of {len(shorter)} "
        "of SDA's are shorter"
    )
    return on_one(said, SHOWN, all(shorter), told)


def certain(found: Found) -> Claim:
    said = f"By inputs generated for them RBA's class capsules all reach {FULL:g}, to two decimals (activations)"
    rba = found.get(PARTS["activations"][1])
    if rba is None:
        return on_one(said, SHOWN, None)
    told = f"they are {_span(rba)} long {after(rba)}, in the paper after {PAPER_STEPS:,}"
    reached = round(min(_lengths(rba)), 2) >= FULL
    held = None if not reached and rba.steps < PAPER_STEPS else reached
    return on_one(said, SHOWN, held, told + (": a longer training may reach it" if held is None else ""))


def hidden_classes(found: Found) -> Claim:
    paper = expected()["hidden"]
    said = (
        f"Hidden capsules stand for things that can be named (the paper names {len(paper)}, each of another class; "
        f"here: the inputs generated for hidden capsules activate {len(paper)} different classes most, or more)"
    )
    record = found.get(PARTS["hidden"][0])
    if record is None:
        return on_one(said, SHOWN, None)
    classes = _classes(record)
    counts = ", ".join(f"{name} by {count}" for name, count in classes.most_common())
    told = f"{len(classes)} {after(record)} ({counts})"
    rba = found.get(PARTS["activations"][1])
    others = [*record.earlier, *([rba] if rba is not None else [])]
    told += "".join(f", {len(_classes(one))} {after(one)} ({RULES[one.figures['rule']]})" for one in others)
    return on_one(said, SHOWN, len(classes) >= len(paper), told)


def concentrated(found: Found) -> Claim:
    said = (
        f"Under attack SDA's first filters become more concentrated than without, and so do a CNN's, {ON_BOTH} "
        "(filters; here: the largest tenth of a filter's weights holds more of its absolute weight than in SDA's of "
        "clean training)"
    )
    cells: list[str] = []
    held: dict[str, bool | None] = {}
    for data in DATA:
        kinds = (("sda", "robust"), ("cnn", "robust"), ("sda", "standard"))
        runs = [found.get(name_of(data, rule, kind)) for rule, kind in kinds]
        sda, cnn, clean = (None if run is None else run.figures["filters"]["largest_tenth"] for run in runs)
        if sda is None or cnn is None or clean is None:
            if data in JUDGED:
                held[data] = None
            continue
        here = min(sda, cnn) > clean
        if data in JUDGED:
            held[data] = here
        title = f"{DATA[data]}{mark(here)}" if data in JUDGED else f"{DATA[data]}, not judged, trained at a smaller eps"
        how = [after(run) for run in (runs[0], runs[2]) if run is not None]
        cells.append(f"{title}: SDA {sda:.1%} and the CNN {cnn:.1%} {how[0]}, SDA {clean:.1%} {how[1]}")
    return verdict(said, held, cells)


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
