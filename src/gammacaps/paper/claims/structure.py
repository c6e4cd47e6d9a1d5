"""Claims about Table 1: the structure and the accuracy of networks trained on clean images."""

from gammacaps.paper.claims.claim import BOTH_WAYS, Finding, by_seeds, claim_of_each, joined
from gammacaps.paper.expected import expected
from gammacaps.paper.readings import difference, numbers
from gammacaps.paper.record import Record

ALIKE = 0.05  # two scores closer than this count as the same
SIMILAR = 2.0  # points of accuracy that count as similar
Seeds = list[Record]


@claim_of_each(
    "T near the paper's",
    "T of SDA is about 0.48 and RBA's about 0.02, on all three data sets (Table 1)",
    rule=f"Held where T of every seed of both is within {ALIKE:g} of the paper's; did not hold where for one of the "
    "two that of no seed is.",
    where="table1",
    of=("rba", "sda"),
    kind="standard",
)
def near_paper(rba: Seeds, sda: Seeds) -> Finding:
    row = expected()["structure"][rba[0].figures["data"]]
    parts = []
    for seeds, paper in ((sda, row["sda"]["T"]), (rba, row["rba"]["T"])):
        parts.append(by_seeds([abs(_T(one) - paper) <= ALIKE for one in seeds], ""))
    words = f"SDA {_T_of(sda)} ({row['sda']['T']:.2f}), RBA {_T_of(rba)} ({row['rba']['T']:.2f})"
    return joined(parts, words)


@claim_of_each(
    "T of SDA above EM's",
    "T of SDA is above EM's, and EM's above RBA's, on all three data sets (Table 1)",
    rule="Held where every seed of SDA is above every seed of EM (3 iterations), and these above RBA's; did not hold "
    "where for one of the two none is.",
    where="table1",
    of=("rba", "em", "sda"),
    kind="standard",
)
def tree(rba: Seeds, em: Seeds, sda: Seeds) -> Finding:
    parts = [
        by_seeds([_T(low) < _T(high) for low in lower for high in higher], "")
        for lower, higher in ((em, sda), (rba, em))
    ]
    return joined(parts, f"{_T_of(rba)} / {_T_of(em)} / {_T_of(sda)} for RBA / EM / SDA")


@claim_of_each(
    "SDA's capsules follow the input",
    "SDA's capsules follow the input, on all three data sets (Table 1)",
    rule="Held where D over all classes is above D within class 0 for every seed, by however little (the paper's are "
    "0.02 apart on smallNORB); did not hold where it is for none.",
    where="table1",
    of=("sda",),
    kind="standard",
)
def follows_input(sda: Seeds) -> Finding:
    both = [numbers(record) for record in sda]
    words = " and ".join(f"{mine['D0']:.2f} within class 0, {mine['D']:.2f} over all" for mine in both)
    return by_seeds([mine["D"] > mine["D0"] for mine in both], words)


@claim_of_each(
    "RBA's and EM's capsules do not follow it",
    "RBA's and EM's do not, on all three data sets: their D is the same within class 0 as over all classes (Table 1)",
    rule=f"Held where the two are less than {ALIKE:g} apart for every seed of both; did not hold where they are for no "
    "seed of one (EM's D is of the capsules at all positions).",
    where="table1",
    of=("rba", "em"),
    kind="standard",
)
def rivals_do_not_follow(rba: Seeds, em: Seeds) -> Finding:
    parts, cells = [], []
    for title, seeds in (("RBA", rba), ("EM", em)):
        gaps = [numbers(record)["D"] - numbers(record)["D0"] for record in seeds]
        parts.append(by_seeds([abs(gap) < ALIKE for gap in gaps], ""))
        cells.append(f"{title} {' and '.join(f'{gap:+.3f}' for gap in gaps)}")
    return joined(parts, ", ".join(cells))


@claim_of_each(
    "RBA and SDA equally accurate",
    "On clean images RBA and SDA are about as accurate as one another, on all three data sets (Table 1)",
    rule=f"Held where the interval of their difference lies within {SIMILAR:g} points; did not hold where it lies "
    "outside.",
    where="table1",
    of=("rba", "sda"),
    kind="standard",
    by_bits=True,
)
def similar_accuracy(rba: Seeds, sda: Seeds) -> Finding:
    gap = difference(sda, rba, "clean")
    words = f"SDA less RBA {gap.words()}"
    low, high = 100 * gap.low, 100 * gap.high
    if low >= -SIMILAR and high <= SIMILAR:
        return Finding(True, words)
    return Finding(False, words) if high < -SIMILAR or low > SIMILAR else Finding(None, words, BOTH_WAYS)


@claim_of_each(
    "EM less accurate",
    "On clean images EM is less accurate than RBA and SDA, on all three data sets (Table 1)",
    rule="Held where the intervals of RBA less EM and of SDA less EM lie above 0; did not hold where one lies below.",
    where="table1",
    of=("em", "rba", "sda"),
    kind="standard",
    by_bits=True,
)
def em_less_accurate(em: Seeds, rba: Seeds, sda: Seeds) -> Finding:
    parts, cells = [], []
    for title, others in (("RBA", rba), ("SDA", sda)):
        gap = difference(others, em, "clean")
        says = True if gap.low > 0 else False if gap.high < 0 else None
        parts.append(Finding(says, "", BOTH_WAYS if says is None else ""))
        cells.append(f"{title} less EM {gap.words()}")
    paper = expected()["structure"][em[0].figures["data"]]["em"]["accuracy"]
    ours = " and ".join(f"{numbers(one)['accuracy']:.1f}%" for one in em)
    return joined(parts, f"{', '.join(cells)}; EM {ours} after {em[0].steps:,} steps (paper {paper:.2f}%)")


CLAIMS = (near_paper, tree, follows_input, rivals_do_not_follow, similar_accuracy, em_less_accurate)


def _T(record: Record) -> float:
    return numbers(record)["T"]


def _T_of(seeds: Seeds) -> str:
    return " and ".join(f"{_T(one):.2f}" for one in seeds)
