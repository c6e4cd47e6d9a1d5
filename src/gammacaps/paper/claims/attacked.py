"""Claims about accuracy under attack: Table 2, the table of FGSM, and the comparison that the paper leaves out."""

from collections.abc import Sequence

from gammacaps.evaluation.paired import Difference
from gammacaps.paper.claims.claim import (
    BOTH_WAYS,
    ON_BOTH,
    Finding,
    Verdict,
    claim,
    claim_of_each,
    joined,
    mark,
    runs_of,
    seeds_of,
    verdict,
)
from gammacaps.paper.expected import EPS, expected
from gammacaps.paper.plan import ALIKE, DATA, JUDGED, LONGS, SHOWN
from gammacaps.paper.readings import (
    NOT_YET,
    Records,
    difference,
    lacking_attacks,
    lowest_share,
    most_frequent_share,
    own_difference,
    unlearned,
)
from gammacaps.paper.record import Record

CLEARLY = 5.0  # points of accuracy that count as a difference where both may be near 0
HARDLY = 1.0  # points by which nobody calls a network more robust
STRONG = 0.2  # what the paper says that SDA keeps on MNIST under strong attacks
AS_THE_PAPER = (*LONGS, *runs_of(("sda",), "robust", on=("mnist",)))  # on fashionMNIST what the paper looks into
OF_TABLE_2 = (*runs_of(("sda",), "robust"), *LONGS, *runs_of(("rba", "em"), "standard"))
Seeds = list[Record]


def _attacked_sda(records: Records, data: str) -> Seeds:
    """SDA under attack as the paper trained it."""
    return seeds_of(records, data, "sda", "long" if data == SHOWN else "robust")


@claim(
    "More robust than rivals trained without attack",
    f"SDA trained under attack is much more robust at eps 0.3 than RBA and EM trained without, {ON_BOTH} (Table 2)",
    rule=f"Held where under PGD-40 the intervals of SDA less RBA and SDA less EM lie above {CLEARLY:g} points; did not "
    "hold where one lies below.",
    where="table2",
    runs=(*AS_THE_PAPER, *runs_of(("rba", "em"), "standard", on=JUDGED)),
    by_bits=True,
)
def more_robust(records: Records) -> Verdict:
    findings = {}
    for data in JUDGED:
        sda = _attacked_sda(records, data)
        rivals = [seeds_of(records, data, rule, "standard") for rule in ("rba", "em")]
        if not sda or not all(rivals):
            findings[data] = Finding(None, NOT_YET, NOT_YET)
            continue
        gaps = [difference(sda, other, "pgd", 0.3) for other in rivals]
        parts = [_beyond(100 * gap.low, 100 * gap.high, CLEARLY) for gap in gaps]
        steps = ", ".join(f"{one[0].steps:,}" for one in (sda, *rivals))
        words = f"SDA less RBA {gaps[0].words()}, less EM {gaps[1].words()}, after {steps} steps"
        findings[data] = joined(parts, words)
    return verdict(findings)


@claim(
    "As robust as the paper's",
    f"SDA trained under attack reaches the paper's accuracy under PGD-40 at eps 0.1 and 0.3, {ON_BOTH} (Table 2)",
    rule="Held where the 95% intervals lie above the paper's figures, by the lower of what the margin and the authors' "
    "loss leave; did not hold where one lies below.",
    where="table2",
    runs=AS_THE_PAPER,
    by_bits=True,
)
def reaches_paper(records: Records) -> Verdict:
    findings = {}
    for data in JUDGED:
        sda = _attacked_sda(records, data)
        if not sda:
            findings[data] = Finding(None, NOT_YET, NOT_YET)
            continue
        parts, cells = [], []
        for eps, paper in list(zip(EPS, expected()["pgd"][data]["sda"], strict=True))[:2]:
            value, low, high = lowest_share(sda, eps)
            parts.append(_beyond(100 * low, 100 * high, paper))
            interval = f"{value:.1%}, interval {low:.1%} to {high:.1%}"
            cells.append(f"eps {eps:g}{mark(parts[-1].says)} {interval} (paper {paper:.2f}%)")
        findings[data] = joined(parts, f"{', '.join(cells)}, after {sda[0].steps:,} steps")
    return verdict(findings)


@claim(
    "FGSM weaker than PGD",
    "FGSM is the weaker attack: each network of Table 2 keeps at least as much under it as under PGD-40",
    rule="Held where the interval of FGSM less PGD lies above 0 for each network at each of eps 0.1, 0.3 and 0.5 at "
    "which the two were compared; did not hold where one lies below.",
    where="fgsm",
    runs=OF_TABLE_2,
    by_bits=True,
)
def fgsm_weaker(records: Records) -> Verdict:
    findings = {}
    for data in DATA:
        here = [records[name] for name in OF_TABLE_2 if name.startswith(f"{data}-") and name in records]
        if not here:
            findings[data] = Finding(None, NOT_YET, NOT_YET)
            continue
        findings[data] = _compared(here)
    return verdict(findings)


def _compared(networks: Seeds) -> Finding:
    """FGSM less PGD for each network and radius that was under both, with those named that speak against."""
    parts, against = [], []
    for record in networks:
        for eps in EPS:
            gap = own_difference(record, "fgsm", "pgd", eps)
            if gap is None:
                continue
            parts.append(_beyond(gap.low, gap.high, 0))
            if parts[-1].says is False:
                against.append(f"`{record.name}` at eps {eps:g}: FGSM less PGD {gap.words()}")
    if not parts:
        return Finding(None, "no network was under both attacks", NOT_YET)
    says = [part.says for part in parts]
    counts = f"{says.count(True)} for, {says.count(False)} against, {says.count(None)} open"
    words = f"of {len(parts)} comparisons (a network at a radius) {counts}"
    return joined(parts, "; ".join((words, *against)))


@claim_of_each(
    "20% under strong attacks",
    f'"For MNIST, our method still has an accuracy of {STRONG:.0%} under strong attacks" (SDA at eps 0.5, 20.11% '
    "in Table 2)",
    rule=f"Held where the 95% interval under PGD-40 at eps 0.5 lies above {STRONG:.0%}; did not hold where it lies "
    "below.",
    where="table2",
    of=("sda",),
    kind="robust",
    on=("mnist",),
    by_bits=True,
)
def strong_attacks(sda: Seeds) -> Finding:
    """What was claimed, what any network can keep, and what was measured."""
    worst, pgd = sda[0].worst(0.5), sda[0].accuracy("pgd", 0.5)
    if worst is None or pgd is None:
        return Finding(None, NOT_YET, NOT_YET)
    value, low, high = lowest_share(sda, 0.5, authors=False)
    sentence = (
        f"{value:.1%}, interval {low:.1%} to {high:.1%}, of {pgd['images']:,} under PGD-40, whose 40 steps of 0.01 "
        f"reach only 0.4 from where they start, and {worst['accuracy']:.1%} of {worst['images']:,} in the worst case. "
        f"Possible is {most_frequent_share(worst['classes']):.1%} of these, the share of their most frequent class: at "
        "eps 0.5 every image can be turned into the same grey one, which a deterministic classifier takes for one class"
    )
    return _beyond(low, high, STRONG)._replace(words=sentence)


@claim_of_each(
    "Above a CNN under strong attacks",
    "Under strong attacks SDA is more robust than a CNN trained under attack, on MNIST",
    rule=f"Held where, both trained alike, the interval of SDA less CNN in the worst case at eps 0.5 lies above 0; did "
    f"not hold where it ends below {HARDLY:g} point.",
    where="fair",
    of=("sda", "cnn"),
    kind="robust",
    on=("mnist",),
    by_bits=True,
)
def above_cnn(sda: Seeds, cnn: Seeds) -> Finding:
    if any(one.worst(0.5) is None for one in (sda[0], cnn[0])):
        return Finding(None, NOT_YET, NOT_YET)
    gap, pgd = difference(sda, cnn, "worst", 0.5), difference(sda, cnn, "pgd", 0.5)
    words = f"SDA less CNN {gap.words()}; under PGD-40, which falls short of that radius, {pgd.words()}"
    return _above(gap)._replace(words=words)


@claim(
    "Robust by gamma-capsules alone",
    "Robustness is a property of gamma-capsules alone: trained under the same attack, SDA stands above RBA and a "
    "CNN, on all three data sets (the comparison that the paper leaves out)",
    rule="Held where the intervals of SDA less RBA and SDA less CNN in the worst case at the radius of training lie "
    f"above 0, on {' and '.join(DATA[data] for data in JUDGED)} on cross-entropy too; did not hold where one ends "
    f"below {HARDLY:g} point.",
    where="fair",
    runs=(*runs_of(ALIKE, "robust"), *runs_of(ALIKE, "entropy", on=JUDGED)),
    by_bits=True,
)
def exclusive(records: Records) -> Verdict:
    findings = {}
    for data in DATA:
        parts = []
        for kind in ("robust", *(("entropy",) if data in JUDGED else ())):
            networks = [seeds_of(records, data, rule, kind) for rule in ALIKE]
            parts.append(_alone(networks, "on cross-entropy " * (kind == "entropy")))
        findings[data] = joined(parts, "; ".join(part.words for part in parts))
    return verdict(findings)


def _alone(networks: list[Seeds], how: str) -> Finding:
    if not all(networks) or any(_worst_eps(seeds[0]) is None for seeds in networks):
        return Finding(None, f"{how}{NOT_YET}", NOT_YET)
    sda, rba, cnn = networks
    eps = sda[0].figures["train"]["eps"]
    gaps = [difference(sda, other, "worst", eps) for other in (rba, cnn)]
    spread = [f" (seeds {gap.spread()})" if gap.spread() else "" for gap in gaps]
    words = f"SDA less RBA {gaps[0].words()}{spread[0]}, less CNN {gaps[1].words()}{spread[1]} at eps {eps:g}"
    doubts = [
        f"{name}{doubt}"
        for name, seeds in zip(("SDA", "RBA", "CNN"), networks, strict=True)
        if (doubt := _doubts(seeds[0], [each[0] for each in networks]))
    ]
    return joined([_above(gap) for gap in gaps], how + words + "".join(f"; {each}" for each in doubts))


CLAIMS = (more_robust, reaches_paper, fgsm_weaker, strong_attacks, above_cnn, exclusive)


def _worst_eps(record: Record) -> float | None:
    eps = record.figures["train"]["eps"]
    return eps if record.worst(eps) is not None else None


def _beyond(low: float, high: float, bound: float) -> Finding:
    """For where the whole interval lies above a bound, against where it lies below, neither where it holds it."""
    says = True if low > bound else False if high < bound else None
    return Finding(says, "", BOTH_WAYS if says is None else "")


def _above(gap: Difference) -> Finding:
    """For where the whole interval lies above 0, against where it ends below what anybody would call more robust."""
    says = True if gap.low > 0 else False if 100 * gap.high < HARDLY else None
    return Finding(says, "", BOTH_WAYS if says is None else "")


def _doubts(record: Record, beside: Sequence[Record]) -> str:
    """What speaks against a comparison: classes that were not learned, checks not passed, attacks not tried."""
    few, failed = unlearned(record), [c["check"] for c in record.figures["checks"] if c["verdict"] in ("warn", "fail")]
    words = [f"has not learned {', '.join(few)}"] if few else []
    words += [f"may be lower in truth, not passing {', '.join(failed)}"] if failed else []
    words += ["was under fewer attacks"] if lacking_attacks(record, beside) else []
    return f" {' and '.join(words)}" if words else ""
