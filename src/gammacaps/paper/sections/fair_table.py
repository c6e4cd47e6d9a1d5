"""The comparison that the paper leaves out: all trained under the same attack, and under every attack of a suite."""

from pathlib import Path
from typing import Any

from gammacaps.attacks.table import attack_names
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.paper.expected import EPS
from gammacaps.paper.plan import PARTS
from gammacaps.paper.readings import UNLEARNED, Records, asked_attacks, lacking_attacks, unlearned
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import heading, missing, on_loss, percent, table

ONE_CLASS = "where 100.0% is all that can be kept"  # in what the check at eps 0.5 says of such images
# The attacks of the paper, at the radii at which something can be kept.
PAPERS = tuple((attack, eps) for attack in ("fgsm", "pgd") for eps in EPS[:2])
HEADER = ["data", "network", "steps", "seed", "trained at", "clean", "eps", "FGSM", "PGD-40", "worst case", "images"]


WORDS = (
    "All trained under attack at the same radius, for as many steps as the column says. Each learns from its own loss "
    "(the margin loss of capsules, the spread loss of EM, the cross-entropy of a CNN) under PGD on the margin between "
    "scores; where its row says so, from cross-entropy (of a capsule network's lengths as shares of their sum) under "
    "PGD on the same. The worst case counts an image as right only if it stands under every attack of the suite, on so "
    "many images as its column says. FGSM and PGD are on the test images that the table of runs tells. PGD-40 is of "
    "Table 2, by steps of 0.01 where its cell does not say otherwise: hold networks against one another by the worst "
    "case."
)


def section(measured: Records, folder: Path) -> str:
    """One row a run and radius."""
    records = [measured[name] for name in PARTS["fair"] if name in measured]
    rows = [row for record in records for row in _rows(record)]
    checked = [_checked(record) for record in records if record.figures["checks"]]
    believe = "Can these be believed? " + "; ".join(checked) + "." if checked else ""
    texts = (_suite(records), table(HEADER, rows) if rows else "", _unlearned(records), _skipped(records), believe)
    return "\n\n".join(text for text in (WORDS, *texts, missing("fair", measured), _unattacked(measured)) if text)


def _unattacked(measured: Records) -> str:
    """Routing by itself: the networks of Table 1, SDA's too, under attacks that none of them was trained under."""
    records = [measured[name] for name in PARTS["table1"] if name in measured]
    rows = [[*heading(record), *(percent(record.accuracy(*at)) for at in PAPERS)] for record in records]
    header = ["data", "network", "steps", "seed", *(f"{attack.upper()}, eps {eps:g}" for attack, eps in PAPERS)]
    words = (
        "And without attack in training, the networks of Table 1, SDA among them: routing by itself. Only the paper's "
        "attacks were tried on these, so that a network whose gradients mislead looks better than it is."
    )
    return f"{words}\n\n{table(header, rows)}" if rows else ""


def _unlearned(records: list[Record]) -> str:
    """Which networks have not learned some classes: too short a training for a verdict about the network."""
    runs = [f"`{record.name}` ({', '.join(few)})" for record in records if (few := unlearned(record))]
    words = (
        f"Classes of which fewer than {UNLEARNED:.0%} are right even on clean images, so that a longer training may "
        "well change the network's place: "
    )
    return words + "; ".join(runs) + "." if runs else ""


def _suite(records: list[Record]) -> str:
    """The attacks that the worst cases are over, and which worst cases are over fewer."""
    asked = {name for record in records for name in asked_attacks(record)}
    if not asked:
        return ""
    without: dict[str, list[str]] = {}
    for record in records:
        if names := lacking_attacks(record, records):
            stood = any(row["correct"] for row in record.figures["worst"])
            run = f"`{record.name}`{'' if stood else ' (no image of which stood anyway)'}"
            without.setdefault(", ".join(names), []).append(run)
    suite = ", ".join(name for name in attack_names() if name in asked)
    words = f"The suite, as `gammacaps evaluate` names them: {suite}"
    if any("grey" in row["attacks"] for record in records for row in record.figures["worst"]):
        words += ", and at eps 0.5 the grey image that every image can become"
    return f"{words}." + "".join(f" Without {names}: {', '.join(runs)}." for names, runs in without.items())


def _rows(record: Record) -> list[list[str]]:
    train = record.figures["train"]
    attack = f"eps {train['eps']:g}, {train['attack_steps']} x {train['attack_step']:g}, batch {train['batch']}"
    attack += on_loss(train)
    rows = []
    for eps in sorted({train["eps"], *EPS}):
        worst = record.worst(eps)
        cells = [percent(record.accuracy("fgsm", eps)), _pgd(record.accuracy("pgd", eps))]
        cells += ["-", "-"] if worst is None else [f"**{percent(worst)}**", f"{worst['images']:,}"]
        rows.append([*heading(record), attack, percent(record.figures["results"]["clean"]), f"{eps:g}", *cells])
    return rows


def _pgd(row: dict[str, Any] | None) -> str:
    """With the length of its steps where it is not the paper's."""
    if row is None or row["step"] == EvaluateConfig.attack_step:
        return percent(row)
    return f"{percent(row)}, steps of {row['step']:g}"


def _skipped(records: list[Record]) -> str:
    """Which attacks the worst case is without, why, and in which runs."""
    without: dict[str, list[str]] = {}
    for record in records:
        for words in dict.fromkeys(record.figures["skipped"]):
            without.setdefault(words.rstrip("."), []).append(f"`{record.name}`")
    reasons = [f"{words} ({', '.join(names)})" for words, names in without.items()]
    return "Not in the worst case: " + "; ".join(reasons) + "." if reasons else ""


def _checked(record: Record) -> str:
    judged = [check for check in record.figures["checks"] if check["verdict"] != "skip"]
    passed = sum(check["verdict"] == "pass" for check in judged)
    bad = " ".join(check.get("meaning", check["check"]) for check in judged if check["verdict"] != "pass")
    doubts = [f"not: {bad.rstrip('.')}"] if bad else []
    if any(ONE_CLASS in check.get("meaning", "") for check in judged):
        doubts.append("those from `attainable-at-0.5` on saw images of one class alone")
    return f"`{record.name}`: {passed} of {len(judged)} checks passed" + (f" ({'; '.join(doubts)})" if doubts else "")
