"""The page of the reproduction: what held, every table and figure beside the paper's, and how all of it was made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError
from gammacaps.files import write_whole
from gammacaps.paper.claims import Claim, bound, claims
from gammacaps.paper.expected import expected
from gammacaps.paper.facts import read_facts
from gammacaps.paper.parts import (
    activations,
    attacked,
    better,
    confusion,
    fair,
    features,
    filters,
    hidden,
    maps,
    structure,
)
from gammacaps.paper.parts.cells import Found, table
from gammacaps.paper.plan import DATA, PARTS, name_of
from gammacaps.paper.record import read_records

BEYOND = "better"  # the one section that needs no run of the plan
SECTIONS: dict[str, tuple[str, Callable[[Found, Path], str]]] = {
    "table1": ("Table 1: structure", structure.section),
    "table2": ("Table 2: accuracy under PGD", attacked.pgd_section),
    "fgsm": ("Accuracy under FGSM", attacked.fgsm_section),
    "fair": ("The fair table: all trained under the same attack", fair.section),
    BEYOND: ("Better networks", better.section),
    "confusion": ("Table 3: the confusion matrix", confusion.section),
    "features": ("What class capsules look for", features.section),
    "activations": ("Activations by generated inputs", activations.section),
    "hidden": ("What hidden capsules look for", hidden.section),
    "maps": ("Activation maps", maps.section),
    "filters": ("Filters of the first convolution", filters.section),
}
assert set(SECTIONS) == {*PARTS, BEYOND}

QUICK = (
    "> **This is the cut-down version (`--quick`)**: small networks, a few hundred steps, some dozens of test "
    "images. It shows that everything runs; its figures say nothing of the paper's networks."
)


def write_page(folder: Path, *, quick: bool = False) -> Path:
    """Writes the page beside the folder of figures and its pictures into it; the same figures give the same bytes."""
    found = read_records(folder)
    mixed = sorted(name for name, record in found.items() if record.figures["quick"] != quick)
    if mixed:
        kind = "of the cut-down version" if not quick else "of the whole reproduction"
        raise InputError(f"{folder} holds figures {kind} ({mixed[0]}): give another folder with --results.")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.with_name(f"{folder.name}.md")
    write_whole(path, page(found, folder, read_facts(folder), quick=quick).encode())
    return path


def page(found: Found, folder: Path, facts: dict[str, Any] | None = None, *, quick: bool = False) -> str:
    """The page as markdown; pictures go into the folder."""
    parts = ["# The paper, reproduced"]
    parts += [QUICK] if quick else []
    parts.append(
        "Made by `gammacaps reproduce` from the figures in "
        f"[{folder.name}/]({folder.name}), never by hand. The paper: Peer, Stabinger and Rodríguez-Sánchez, "
        '"Increasing the adversarial robustness and explainability of capsule networks with γ-capsules".'
    )
    parts += verdicts(claims(found))
    parts += ["## Read this beside the figures", notes(found, facts)]
    for title, section in SECTIONS.values():
        parts += [f"## {title}", section(found, folder)]
    parts += ["## The runs", runs_table(found, folder.name)]
    return "\n\n".join(parts) + "\n"


def verdicts(judged: list[Claim]) -> list[str]:
    """The claims by what became of them."""
    parts = []
    for title, held in (("What held", True), ("What did not hold", False), ("Not run yet", None)):
        mine = [claim for claim in judged if claim.held is held]
        if mine:
            lines = [f"- {claim.said}" + (f": {claim.found}." if claim.found else ".") for claim in mine]
            parts += [f"## {title}", "\n".join(lines)]
    return parts


def notes(found: Found, facts: dict[str, Any] | None) -> str:
    """Why figures can differ, each with its number where there is one."""
    lines = [_bound(found), *(_facts(facts) if facts else ()), _unequal(found)]
    lines.append(
        "**The attack.** Ours starts at a random point and makes the margin between lengths large; cross-entropy of "
        "bounded lengths, as in the authors' code, is a weaker attack. So lower figures under PGD need not be lower "
        "robustness."
    )
    sources = {r.figures["results"]["data"]["source"] for r in found.values() if r.figures["data"] == "smallnorb"}
    if any(name.startswith("smallnorb48") for name in sources):
        lines.append(
            "**Data.** smallNORB is here a copy of 48 x 48 pixels made from images that had been JPEG-compressed, "
            "scaled to 28 x 28; each camera's view is an image of its own."
        )
    lengths = sorted({record.steps for record in found.values() if record.figures["train"]["robust"]})
    if lengths:
        words = ", ".join(f"{n:,}" for n in lengths)
        lines.append(f"**Length.** Under attack these were trained for {words} steps; the paper's for up to 15,000.")
    return "\n\n".join(line for line in lines if line)


def _bound(found: Found) -> str:
    """What no network can keep at eps 0.5, and which of the paper's figures are above it."""
    shares = {d: bound(found[name].classes) for d in DATA if (name := name_of(d, "sda", "robust")) in found}
    if not shares:
        return ""
    above = [
        f"{rule.upper()} {row[2]:.2f}% on {DATA[data]} under {attack.upper()}"
        for attack in ("pgd", "fgsm")
        for data, share in shares.items()
        for rule, row in expected()[attack][data].items()
        if row[2] > 100 * share
    ]
    most = ", ".join(f"{DATA[data]} {share:.1%}" for data, share in shares.items())
    words = (
        "**The bound at eps 0.5.** Every image can there become the same grey one, so no deterministic classifier "
        f"keeps more than its most frequent class ({most} of the images measured)."
    )
    return words + (f" The paper's figures above it are attacks that fell short: {'; '.join(above)}." if above else "")


def _facts(facts: dict[str, Any]) -> list[str]:
    """What hangs on no training."""
    told = [
        f"{DATA[data]} {', '.join(f'{share:.1%} at eps {eps}' for eps, share in one['possible'].items())}"
        for data, one in facts["data"].items()
    ]
    images = ", ".join(sorted({f"{one['images']:,}" for one in facts["data"].values()}))
    pairs = (
        "**What is possible.** Two images of different classes at most 2 eps apart can be turned into the same one, "
        "and a deterministic classifier is wrong on one of them. Pairing such images among so many test images of each "
        f"set ({images}) gives what no classifier can surpass on them: {'; '.join(told)}. More images would give more "
        "pairs: it is an upper bound, not what can be reached. smallNORB's images are pale, and close to one another."
    )
    iterations = ", ".join(f"{T:.2f} with {n}" for n, T in facts["em_T"].items())
    em = (
        "**T of EM.** Its couplings are the likelihoods of 16 numbers under normal distributions that each iteration "
        "makes narrower, so they become hard whatever is learned. The mean T of the same network before any training, "
        f"by the number of its iterations: {iterations}. So T of EM tells its iterations more than what it has "
        "learned; the paper does not say how many it takes, and ours takes 3."
    )
    return [pairs, em]


def _unequal(found: Found) -> str:
    """The paper's rivals, with what becomes of them once they are trained as SDA is."""
    words = (
        "**Unequal training.** The paper says that SDA is trained under attack; its figures of RBA and EM look like "
        "those of networks trained on clean images. Table 2 and the table of FGSM repeat that; the fair table trains "
        "all alike."
    )
    for data, title in DATA.items():
        rows = [
            found[n].accuracy("pgd", 0.3) for k in ("standard", "robust") if (n := name_of(data, "rba", k)) in found
        ]
        if len(rows) == 2 and rows[0] and rows[1]:
            told = expected()["pgd"][data]["rba"][1]
            clean, attacked = (100 * row["accuracy"] for row in rows if row)
            words += (
                f" RBA on {title} under PGD-40 at eps 0.3: {told:.2f}% in the paper, here {clean:.1f}% trained on "
                f"clean images and {attacked:.1f}% under attack."
            )
    return words


RUNS = (
    "run",
    "steps",
    "seed",
    "test images",
    "rate",
    "attack in training",
    "training",
    "measuring",
    "machine",
    "commit",
)


def runs_table(found: Found, folder: str) -> str:
    """How each run was made: length, seed, time, device, version."""
    if not found:
        return "None yet: `gammacaps reproduce all`."
    rows = []
    for name, record in found.items():
        figures, train, machine = record.figures, record.figures["train"], record.figures["machine"]
        attack = f"eps {train['eps']:g}, {train['attack_steps']} x {train['attack_step']:g}"
        row = [f"[{name}]({folder}/{name}.json)", f"{record.steps:,}", str(figures["seed"])]
        row += [f"{figures['results']['data']['images']:,}", f"{train['lr']:g} {train['schedule']}"]
        row += [attack if train["robust"] else "none"]
        row += [f"{figures[key] / 60:.1f} min" for key in ("train_seconds", "measure_seconds")]
        row += [f"{machine['device_name']}, torch {machine['torch']}", figures["commit"] or machine["gammacaps"]]
        rows.append(row)
    return table(RUNS, rows)
