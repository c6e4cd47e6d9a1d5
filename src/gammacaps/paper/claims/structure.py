"""Claims about Table 1: the structure and the accuracy of networks trained on clean images."""

from gammacaps.paper.claims.claim import claim_of_each
from gammacaps.paper.expected import expected
from gammacaps.paper.readings import numbers
from gammacaps.paper.record import Record

ALIKE = 0.05  # two scores closer than this count as the same
SIMILAR = 2.0  # points of accuracy that count as similar
BOTH_SEEDS = (("sda", 0), ("sda", 1))


@claim_of_each(
    "T near the paper's",
    "T of SDA is about 0.48 and RBA's about 0.02, on all three data sets (Table 1; here: each within "
    f"{ALIKE:g} of the paper's, SDA's of both seeds)",
    where="table1",
    of=("rba", *BOTH_SEEDS),
    kind="standard",
)
def near_paper(rba: Record, *sda: Record) -> tuple[bool, str]:
    paper_row = expected()["structure"][rba.figures["data"]]
    T, paper = [_T(record) for record in (*sda, rba)], [*[paper_row["sda"]["T"]] * len(sda), paper_row["rba"]["T"]]
    words = f"SDA {_listed(T[:-1])} ({paper[0]:.2f}), RBA {T[-1]:.2f} ({paper[-1]:.2f})"
    return all(abs(ours - theirs) <= ALIKE for ours, theirs in zip(T, paper, strict=True)), words


@claim_of_each(
    "T of SDA above EM's",
    "T of SDA is above EM's, and EM's above RBA's, on all three data sets (Table 1; here: SDA's of both seeds)",
    where="table1",
    of=("rba", "em", *BOTH_SEEDS),
    kind="standard",
)
def tree(rba: Record, em: Record, *sda: Record) -> tuple[bool, str]:
    T = [_T(record) for record in sda]
    words = f"{_T(rba):.2f} / {_T(em):.2f} / {_listed(T)} for RBA / EM / SDA"
    return _T(rba) < _T(em) < min(T), words


@claim_of_each(
    "SDA's capsules follow the input",
    "SDA's capsules follow the input, on all three data sets (Table 1; here: of both seeds, D over all classes is "
    "above D within class 0, by however little, for the paper's are 0.02 apart on smallNORB)",
    where="table1",
    of=BOTH_SEEDS,
    kind="standard",
)
def follows_input(*seeds: Record) -> tuple[bool, str]:
    both = [numbers(record) for record in seeds]
    words = " and ".join(f"{mine['D0']:.2f} within class 0, {mine['D']:.2f} over all" for mine in both)
    return all(mine["D"] > mine["D0"] for mine in both), words


@claim_of_each(
    "RBA's and EM's capsules do not follow it",
    "RBA's and EM's do not, on all three data sets: their D is the same within class 0 as over all classes "
    f"(Table 1; here: less than {ALIKE:g} apart, EM's of the capsules at all positions)",
    where="table1",
    of=("rba", "em"),
    kind="standard",
)
def rivals_do_not_follow(rba: Record, em: Record) -> tuple[bool, str]:
    gaps = [numbers(record)["D"] - numbers(record)["D0"] for record in (rba, em)]
    return all(abs(gap) < ALIKE for gap in gaps), f"RBA {gaps[0]:+.3f}, EM {gaps[1]:+.3f}"


@claim_of_each(
    "RBA and SDA equally accurate",
    "On clean images RBA and SDA are about as accurate as one another, on all three data sets (Table 1; here: at "
    f"most {SIMILAR:g} points apart, SDA's of both seeds)",
    where="table1",
    of=("rba", *BOTH_SEEDS),
    kind="standard",
)
def similar_accuracy(rba: Record, *sda: Record) -> tuple[bool, str]:
    theirs, ours = _accuracy(rba), [_accuracy(record) for record in sda]
    words = f"RBA {theirs:.1f}%, SDA {' and '.join(f'{x:.1f}%' for x in ours)}"
    return all(abs(theirs - x) <= SIMILAR for x in ours), words


@claim_of_each(
    "EM less accurate",
    "On clean images EM is less accurate than RBA and SDA, on all three data sets (Table 1)",
    where="table1",
    of=("em", "rba", *BOTH_SEEDS),
    kind="standard",
)
def em_less_accurate(em: Record, *others: Record) -> tuple[bool, str]:
    least = min(_accuracy(record) for record in others)
    paper = expected()["structure"][em.figures["data"]]["em"]["accuracy"]
    ours = f"EM {_accuracy(em):.1f}% after {em.steps:,} steps (paper {paper:.2f}%)"
    words = f"{ours}, the others {least:.1f}% or more"
    return _accuracy(em) < least, words


CLAIMS = (near_paper, tree, follows_input, rivals_do_not_follow, similar_accuracy, em_less_accurate)


def _T(record: Record) -> float:
    return numbers(record)["T"]


def _accuracy(record: Record) -> float:
    return numbers(record)["accuracy"]


def _listed(scores: list[float]) -> str:
    return " and ".join(f"{score:.2f}" for score in scores)
