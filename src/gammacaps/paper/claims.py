"""What the paper says, held against the runs' figures: each claim held, did not hold, or was not run yet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gammacaps.paper.expected import EPS, expected
from gammacaps.paper.parts.cells import Found
from gammacaps.paper.parts.confusion import SHIRT, right
from gammacaps.paper.parts.structure import numbers
from gammacaps.paper.plan import DATA, PARTS, name_of
from gammacaps.paper.record import Record

ALIKE = 0.05  # two scores closer than this count as the same
SIMILAR = 2.0  # points of accuracy that count as similar
CLEARLY = 5.0  # points of accuracy that count as a difference where both may be near 0
STRONG = 0.2  # what the paper says that SDA keeps on MNIST under strong attacks
NO_SHIRT, SOME_SHIRTS = 0.01, 0.05  # shares of shirts that count as none, and as learned
FULL = 0.99  # the length of all of RBA's class capsules in the paper, to two decimals
SNEAKER = 7


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what the figures say of it; `held` is None where runs are missing."""

    said: str
    held: bool | None
    found: str = ""


def claims(found: Found) -> list[Claim]:
    """All that the page opens with, in the paper's order."""
    return [check(found) for check in CLAIMS]


def tree(found: Found) -> Claim:
    said = "T of SDA is above EM's, and EM's above RBA's, on all three data sets (Table 1)"

    def judge(rba: Record, em: Record, sda: Record) -> tuple[bool, str]:
        T = [numbers(record)["T"] for record in (rba, em, sda)]
        return T[0] < T[1] < T[2], f"{T[0]:.2f} / {T[1]:.2f} / {T[2]:.2f} for RBA / EM / SDA"

    return _on_all(said, found, ("rba", "em", "sda"), "standard", judge)


def near_paper(found: Found) -> Claim:
    said = (
        "T of SDA is about 0.48 and RBA's about 0.02, on all three data sets (Table 1; here: each within "
        f"{ALIKE:g} of the paper's)"
    )

    def judge(rba: Record, sda: Record) -> tuple[bool, str]:
        told = expected()["structure"][sda.figures["data"]]
        pairs = [(numbers(record)["T"], told[record.figures["rule"]]["T"]) for record in (sda, rba)]
        words = ", ".join(
            f"{name} {ours:.2f} ({paper:.2f})" for name, (ours, paper) in zip(("SDA", "RBA"), pairs, strict=True)
        )
        return all(abs(ours - paper) <= ALIKE for ours, paper in pairs), words

    return _on_all(said, found, ("rba", "sda"), "standard", judge)


def follows_input(found: Found) -> Claim:
    said = (
        "SDA's capsules follow the input, on all three data sets (Table 1; here: of both seeds, D over all classes is "
        f"at least {ALIKE:g} above D within class 0)"
    )

    def judge(*seeds: Record) -> tuple[bool, str]:
        both = [numbers(record) for record in seeds]
        words = " and ".join(f"{mine['D0']:.2f} within class 0, {mine['D']:.2f} over all" for mine in both)
        return all(mine["D"] - mine["D0"] >= ALIKE for mine in both), words

    return _on_all(said, found, (("sda", 0), ("sda", 1)), "standard", judge)


def rivals_do_not_follow(found: Found) -> Claim:
    said = (
        "RBA's and EM's do not, on all three data sets: their D is the same within class 0 as over all classes "
        f"(Table 1; here: less than {ALIKE:g} apart)"
    )

    def judge(rba: Record, em: Record) -> tuple[bool, str]:
        gaps = [numbers(record)["D"] - numbers(record)["D0"] for record in (rba, em)]
        return all(abs(gap) < ALIKE for gap in gaps), f"RBA {gaps[0]:+.2f}, EM {gaps[1]:+.2f}"

    return _on_all(said, found, ("rba", "em"), "standard", judge)


def similar_accuracy(found: Found) -> Claim:
    said = (
        "On clean images RBA and SDA are about as accurate as one another, on all three data sets (Table 1; here: at "
        f"most {SIMILAR:g} points apart)"
    )

    def judge(rba: Record, sda: Record) -> tuple[bool, str]:
        accuracy = [numbers(record)["accuracy"] for record in (rba, sda)]
        return abs(accuracy[0] - accuracy[1]) <= SIMILAR, f"RBA {accuracy[0]:.1f}%, SDA {accuracy[1]:.1f}%"

    return _on_all(said, found, ("rba", "sda"), "standard", judge)


def more_robust(found: Found) -> Claim:
    said = (
        "SDA trained under attack is much more robust at eps 0.3 than RBA and EM trained without, on all three data "
        f"sets (Table 2, PGD-40; here: right more than twice as often as either, and by {CLEARLY:g} points)"
    )
    cells: list[str] = []
    held: list[bool | None] = []
    for data, title in DATA.items():
        runs = [found.get(name_of(data, r, k)) for r, k in (("sda", "robust"), ("rba", "standard"), ("em", "standard"))]
        there = [record for record in runs if record is not None]
        values = [100 * row["accuracy"] for record in there if (row := record.accuracy("pgd", 0.3)) is not None]
        if len(values) < len(runs):
            held.append(None)
            continue
        rivals = max(values[1:])
        held.append(values[0] > max(2 * rivals, rivals + CLEARLY))
        after = [f"{record.steps:,}" for record in there]
        cells.append(
            f"{title}{_mark(held[-1])}: {values[0]:.1f}% against {values[1]:.1f}% and {values[2]:.1f}%, after "
            f"{after[0]}, {after[1]} and {after[2]} steps"
        )
    return Claim(said, together(held), "; ".join(cells))


def reaches_paper(found: Found) -> Claim:
    said = (
        "SDA trained under attack reaches the paper's accuracy under PGD-40 at eps 0.1 and 0.3, on all three data sets "
        "(Table 2; here: the 95% interval of the longest training does not end below it)"
    )
    cells: list[str] = []
    held: list[bool | None] = []
    for data, title in DATA.items():
        runs = [found[name] for kind in ("robust", "long") if (name := name_of(data, "sda", kind)) in found]
        if not runs:
            held.append(None)
            continue
        record = runs[-1]
        for eps, told in list(zip(EPS, expected()["pgd"][data]["sda"], strict=True))[:2]:
            row = record.accuracy("pgd", eps)
            assert row is not None
            high = 100 * row["interval"][1]
            held.append(high >= told)
            ours = f"{100 * row['accuracy']:.1f}%, at most {high:.1f}%"
            cells.append(f"{title} eps {eps:g}{_mark(held[-1])}: {ours} (paper {told:.2f}%)")
        cells[-1] += f", after {record.steps:,} steps"
    return Claim(said, together(held), "; ".join(cells))


def fgsm_weaker(found: Found) -> Claim:
    said = (
        "FGSM is the weaker attack: each SDA network trained under attack, of either seed, keeps at least as much "
        "under it as under PGD-40, at eps 0.1, 0.3 and 0.5"
    )
    cells: list[str] = []
    held: list[bool | None] = []
    for name in PARTS["table2"]:
        if "-sda-" not in name:
            continue
        if name not in found:
            held.append(None)
            continue
        for eps in EPS:
            fgsm, pgd = (found[name].accuracy(attack, eps) for attack in ("fgsm", "pgd"))
            assert fgsm is not None
            assert pgd is not None
            held.append(fgsm["accuracy"] >= pgd["accuracy"])
            if not held[-1]:
                cells.append(
                    f"`{name}` at eps {eps:g}: {fgsm['accuracy']:.1%} under FGSM, {pgd['accuracy']:.1%} under PGD"
                )
    judged = together(held)
    return Claim(said, judged, "; ".join(cells) or ("without exception" if judged else ""))


def strong_attacks(found: Found) -> Claim:
    """What was claimed, what any network can keep, and what was measured."""
    said = (
        f'"For MNIST, our method still has an accuracy of {STRONG:.0%} under strong attacks" (SDA at eps 0.5, 20.11% '
        f"under PGD-40 in Table 2; here: at least {STRONG:.0%} in the worst case over the fair table's attacks)"
    )
    record = found.get(name_of("mnist", "sda", "robust"))
    worst, pgd = (record.worst(0.5), record.accuracy("pgd", 0.5)) if record is not None else (None, None)
    if worst is None or pgd is None:
        return Claim(said, None)
    told = (
        f"possible is {bound(worst['classes']):.1%} at most, the share of the most frequent class among the "
        f"{worst['images']:,} images measured, for at eps 0.5 every image can be turned into the same grey one, which "
        f"a deterministic classifier takes for one class; measured is {worst['accuracy']:.1%} of them in the worst "
        f"case, and {pgd['accuracy']:.1%} of {pgd['images']:,} under PGD-40, whose 40 steps of 0.01 reach only "
        "0.4 from where they start"
    )
    return Claim(said, worst["accuracy"] >= STRONG, told)


def bound(counts: Sequence[int]) -> float:
    """The share of the most frequent class, of images of which there are so many of each."""
    return max(counts) / sum(counts)


def exclusive(found: Found) -> Claim:
    said = (
        "Robustness is a property of gamma-capsules alone: trained under the same attack, SDA stands above RBA and a "
        "CNN in the worst case at the radius of training, on all three data sets (the comparison that the paper leaves "
        "out; here: its 95% interval lies above both of theirs)"
    )

    def row(record: Record) -> dict[str, Any] | None:
        return record.worst(record.figures["train"]["eps"])

    there = {name: record for name, record in found.items() if row(record) is not None}

    def judge(sda: Record, rba: Record, cnn: Record) -> tuple[bool, str]:
        rows = [row(record) or {} for record in (sda, rba, cnn)]
        low = rows[0]["interval"][0]
        told = [f"{100 * row['accuracy']:.1f}%" for row in rows]
        words = f"SDA {told[0]}, RBA {told[1]}, CNN {told[2]}"
        return all(low > row["interval"][1] for row in rows[1:]), words

    return _on_all(said, there, ("sda", "rba", "cnn"), "robust", judge)


def shirt(found: Found) -> Claim:
    said = (
        f"After 5,000 steps no shirt is right (here: fewer than {NO_SHIRT:.0%}), by 15,000 features of shirts are "
        f"learned (here: more than {SOME_SHIRTS:.0%} are right; Table 3)"
    )
    record = found.get(PARTS["confusion"][0])
    if record is None or not record.earlier:
        return Claim(said, None)
    early, late = right(record.earlier[0], SHIRT), right(record, SHIRT)
    told = f"{early:.1%} of them are right after {record.earlier[0].steps:,} steps, {late:.1%} after {record.steps:,}"
    return Claim(said, early < NO_SHIRT and late > SOME_SHIRTS, told)


def sneakers(found: Found) -> Claim:
    said = (
        "After 15,000 steps the class sneaker stands for none of the above (here: it takes at least half of the images "
        "that show nothing, in at least two thirds of their kinds)"
    )
    record = found.get(PARTS["features"][0])
    if record is None:
        return Claim(said, None)
    nothing = record.figures["nothing"]
    told = f"after {record.steps:,} steps: {nothing['meaning'].rstrip('.')}"
    return Claim(said, SNEAKER in nothing["classes"], told)


def confident(found: Found) -> Claim:
    said = (
        f"By inputs generated for them RBA's class capsules all reach {FULL:g}, SDA's are more careful (activations, "
        f"in the paper both after 15,000 steps; here: each of RBA's is at least {FULL:g} to two decimals, each of "
        "SDA's shorter than RBA's of its class)"
    )
    sda, rba = (found.get(name) for name in PARTS["activations"])
    if sda is None or rba is None:
        return Claim(said, None)
    lengths = [[one["activation"] for one in r.figures["generated"]["class"]] for r in (sda, rba)]
    spans = [f"{min(values):.2f} to {max(values):.2f}" for values in lengths]
    shorter = [mine < theirs for mine, theirs in zip(*lengths, strict=True)]
    told = (
        f"RBA's are {spans[1]} long {_after(rba)}, SDA's {spans[0]} {_after(sda)}; {sum(shorter)} of {len(shorter)} of "
        "SDA's are shorter"
    )
    return Claim(said, round(min(lengths[1]), 2) >= FULL and all(shorter), told)


def concentrated(found: Found) -> Claim:
    said = (
        "Under attack the first filters become more concentrated than without (filters; here: the largest tenth of a "
        "filter's weights holds more of its absolute weight)"
    )
    robust, standard = (found.get(name) for name in PARTS["filters"])
    if robust is None or standard is None:
        return Claim(said, None)
    under, clean = (record.figures["filters"]["largest_tenth"] for record in (robust, standard))
    return Claim(said, under > clean, f"{under:.1%} {_after(robust)}, {clean:.1%} {_after(standard)}")


CLAIMS: tuple[Callable[[Found], Claim], ...] = (
    near_paper,
    tree,
    follows_input,
    rivals_do_not_follow,
    similar_accuracy,
    more_robust,
    reaches_paper,
    fgsm_weaker,
    strong_attacks,
    exclusive,
    shirt,
    sneakers,
    confident,
    concentrated,
)


def _mark(held: bool | None) -> str:
    return "" if held else " (not)"


def _after(record: Record) -> str:
    """How long a network was trained, and how."""
    return f"after {record.steps:,} steps {'under attack' if record.figures['train']['robust'] else 'on clean images'}"


def _on_all(
    said: str, found: Found, runs: tuple[str | tuple[str, int], ...], kind: str, judge: Callable[..., tuple[bool, str]]
) -> Claim:
    """A claim about runs, each a rule of the first seed or a rule and its seed, that must hold on every data set."""
    cells: list[str] = []
    held: list[bool | None] = []
    for data, title in DATA.items():
        named = [(run, 0) if isinstance(run, str) else run for run in runs]
        records = [found.get(name_of(data, rule, kind, seed)) for rule, seed in named]
        if any(record is None for record in records):
            held.append(None)
            cells.append(f"{title}: not run yet")
            continue
        here, words = judge(*records)
        held.append(here)
        cells.append(f"{title}{_mark(here)}: {words}")
    told = "; ".join(cells) if any(one is not None for one in held) else ""
    return Claim(said, together(held), told)


def together(held: Sequence[bool | None]) -> bool | None:
    """Whether all hold: one that does not decides, and where none does, one that was not run leaves it open."""
    if any(one is False for one in held):
        return False
    return None if any(one is None for one in held) else True
