"""Claims about what is seen inside: shirts, the class for none of the above, generated inputs, filters."""

from collections import Counter

from gammacaps.paper.claims.claim import ON_BOTH, Verdict, after, claim, mark, on_one, runs_of, verdict
from gammacaps.paper.expected import expected
from gammacaps.paper.plan import DATA, JUDGED, PARTS, RULES, SHOWN, name_of
from gammacaps.paper.readings import SHIRT, Records, right, strongest
from gammacaps.paper.record import Record

NO_SHIRT, SOME_SHIRTS = 0.01, 0.05  # shares of shirts that count as none, and as learned
FULL = 0.99  # the length of all of RBA's class capsules in the paper, to two decimals
PAPER_STEPS = 15_000  # after which the paper tells it
SNEAKER = 7
NAMED = expected()["hidden"]  # the hidden capsules that the paper names
SDA, RBA = PARTS["activations"]


@claim(
    "Shirts learned late",
    "After 5,000 steps no shirt is right (here: fewer than "
    f"{NO_SHIRT:.0%}), by 15,000 features of shirts are learned (here, as a stand-in: more than {SOME_SHIRTS:.0%} "
    "of them are right; Table 3)",
    where="confusion",
    runs=[SDA],
)
def shirt(records: Records) -> Verdict:
    record = records.get(SDA)
    if record is None or not record.earlier:
        return on_one(SHOWN, None)
    first = record.earlier[0]
    early, late = right(first, SHIRT), right(record, SHIRT)
    lengths = [_lengths(one)[SHIRT] for one in (first, record)]
    paper = expected()["activations"]["rows"][SHIRT]
    sentence = (
        f"{early:.1%} of them are right after {first.steps:,} steps, {late:.1%} after {record.steps:,}; the input that "
        f"is generated for the class makes its capsule {lengths[0]:.2f} and then {lengths[1]:.2f} long, in the paper "
        f"{paper[0]:.2f} and {paper[1]:.2f}"
    )
    return on_one(SHOWN, early < NO_SHIRT and late > SOME_SHIRTS, sentence)


@claim(
    "Sneaker for none of the above",
    "After 15,000 steps the class sneaker stands for none of the above (here: it takes at least half of the images "
    "that show nothing, in at least two thirds of their kinds)",
    where="features",
    runs=[SDA],
)
def sneakers(records: Records) -> Verdict:
    record = records.get(SDA)
    if record is None:
        return on_one(SHOWN, None)
    nothing = record.figures["nothing"]
    sentence = f"after {record.steps:,} steps: {nothing['meaning'].rstrip('.')}"
    return on_one(SHOWN, SNEAKER in nothing["classes"], sentence)


@claim(
    "SDA less certain than RBA",
    "By inputs generated for them SDA's class capsules become shorter than RBA's (activations; here: each of them)",
    where="activations",
    runs=[SDA, RBA],
)
def careful(records: Records) -> Verdict:
    sda, rba = records.get(SDA), records.get(RBA)
    if sda is None or rba is None:
        return on_one(SHOWN, None)
    shorter = [mine < theirs for mine, theirs in zip(_lengths(sda), _lengths(rba), strict=True)]
    sentence = (
        f"SDA's are {_span(sda)} long {after(sda)}, RBA's {_span(rba)} {after(rba)}; {sum(shorter)} of {len(shorter)} "
        "of SDA's are shorter"
    )
    return on_one(SHOWN, all(shorter), sentence)


@claim(
    "RBA certain of every class",
    f"By inputs generated for them RBA's class capsules all reach {FULL:g}, to two decimals (activations)",
    where="activations",
    runs=[RBA],
)
def certain(records: Records) -> Verdict:
    rba = records.get(RBA)
    if rba is None:
        return on_one(SHOWN, None)
    sentence = f"they are {_span(rba)} long {after(rba)}, in the paper after {PAPER_STEPS:,}"
    reached = round(min(_lengths(rba)), 2) >= FULL
    held = None if not reached and rba.steps < PAPER_STEPS else reached
    return on_one(SHOWN, held, sentence + (": a longer training may reach it" if held is None else ""))


@claim(
    "Hidden capsules that can be named",
    f"Hidden capsules stand for things that can be named (the paper names {len(NAMED)}, each of another class; "
    f"here: the inputs generated for hidden capsules activate {len(NAMED)} different classes most, or more)",
    where="hidden",
    runs=[SDA, RBA],
)
def hidden_classes(records: Records) -> Verdict:
    record, rba = records.get(SDA), records.get(RBA)
    if record is None:
        return on_one(SHOWN, None)
    classes = _classes(record)
    counts = ", ".join(f"{name} by {count}" for name, count in classes.most_common())
    sentence = f"{len(classes)} {after(record)} ({counts})"
    others = [*record.earlier, *([rba] if rba is not None else [])]
    sentence += "".join(f", {len(_classes(one))} {after(one)} ({RULES[one.figures['rule']]})" for one in others)
    return on_one(SHOWN, len(classes) >= len(NAMED), sentence)


@claim(
    "Filters concentrated by attack",
    f"Under attack SDA's first filters become more concentrated than without, and so do a CNN's, {ON_BOTH} "
    "(filters; here: the largest tenth of a filter's weights holds more of its absolute weight than in SDA's of "
    "clean training)",
    where="filters",
    runs=(*runs_of(("sda", "cnn"), "robust"), *runs_of(("sda",), "standard")),
)
def concentrated(records: Records) -> Verdict:
    cells: list[str] = []
    held: dict[str, bool | None] = {}
    for data in DATA:
        kinds = (("sda", "robust"), ("cnn", "robust"), ("sda", "standard"))
        runs = [records.get(name_of(data, rule, kind)) for rule, kind in kinds]
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
    return verdict(held, cells)


CLAIMS = (shirt, sneakers, careful, certain, hidden_classes, concentrated)


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
