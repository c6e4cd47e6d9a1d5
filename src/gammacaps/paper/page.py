"""The page of the reproduction: what held, every table and figure beside the paper's, and how all of it was made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError
from gammacaps.files import write_whole
from gammacaps.paper.claims import judge_claims
from gammacaps.paper.claims.attacked import exclusive
from gammacaps.paper.claims.claim import Claim, Verdict
from gammacaps.paper.facts import read_facts
from gammacaps.paper.notes import notes
from gammacaps.paper.plan import DATA, PARTS
from gammacaps.paper.readings import Records
from gammacaps.paper.record import read_records
from gammacaps.paper.sections import (
    activations,
    attacked,
    confusion,
    fair_table,
    features,
    filters,
    hidden,
    maps,
    shipped_networks,
    structure,
)
from gammacaps.paper.sections.cells import on_loss, table

BEYOND = "shipped"  # the one section that needs no run of the plan
SECTIONS: dict[str, tuple[str, Callable[[Records, Path], str]]] = {
    "table1": ("Table 1: structure", structure.section),
    "table2": ("Table 2: accuracy under PGD", attacked.pgd_section),
    "fgsm": ("Accuracy under FGSM", attacked.fgsm_section),
    "fair": ("The fair table: all trained under the same attack", fair_table.section),
    BEYOND: ("Networks that ship", shipped_networks.section),
    "confusion": ("Table 3: the confusion matrix", confusion.section),
    "features": ("What class capsules look for", features.section),
    "activations": ("Activations by generated inputs", activations.section),
    "hidden": ("What hidden capsules look for", hidden.section),
    "maps": ("Activation maps", maps.section),
    "filters": ("Filters of the first convolution", filters.section),
}
assert set(SECTIONS) == {*PARTS, BEYOND}

GLOSSARY = """\
- **RBA, EM, SDA**: rules by which capsules of a layer choose parents in the next: routing by agreement (Sabour, Frosst
  and Hinton, 2017), by expectation maximisation (Hinton, Sabour and Frosst, 2018), and the paper's, by scaled distance
  agreement.
- **T**: how near the chosen parents are to a tree; 1 where each capsule has one parent, 0 where all have equal shares.
- **D**: by how much the length of the capsule that changes most deviates from image to image; [0] is over images of
  class 0 alone.
- **PGD-40, FGSM**: attacks of 40 steps and of one along the gradient, that change no pixel by more than **eps**.
- **Worst case**: an image is right only if it stands under every attack of a suite. **The fair table** has it, of
  networks that were all trained under the same attack."""

QUICK = (
    "> **This is the cut-down version (`--quick`)**: small networks, a few hundred steps, some dozens of test "
    "images. It shows that everything runs; its figures say nothing of the paper's networks."
)


def write_page(folder: Path, *, quick: bool = False) -> Path:
    """Writes the page beside the folder of figures and its pictures into it; the same figures give the same bytes."""
    measured = read_records(folder)
    mixed = sorted(name for name, record in measured.items() if record.figures["quick"] != quick)
    if mixed:
        kind = "of the cut-down version" if not quick else "of the whole reproduction"
        raise InputError(f"{folder} holds figures {kind} ({mixed[0]}): give another folder with --results.")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.with_name(f"{folder.name}.md")
    write_whole(path, page(measured, folder, read_facts(folder), quick=quick).encode())
    return path


def page(measured: Records, folder: Path, facts: dict[str, Any] | None = None, *, quick: bool = False) -> str:
    """The page as markdown; pictures go into the folder."""
    parts = ["# The paper, reproduced"]
    parts += [QUICK] if quick else []
    parts.append(
        "Made by `gammacaps reproduce` from the figures in "
        f"[{folder.name}/]({folder.name}), never by hand. The paper: Peer, Stabinger and Rodríguez-Sánchez, "
        '"Increasing the adversarial robustness and explainability of capsule networks with γ-capsules".'
    )
    parts += [GLOSSARY, *verdicts(judge_claims(measured))]
    parts += ["## Read this beside the figures", notes(measured, facts)]
    for title, section in SECTIONS.values():
        parts += [f"## {title}", section(measured, folder)]
    parts += ["## The runs", runs_table(measured, folder.name)]
    return "\n\n".join(parts) + "\n"


VERDICTS = {True: "held", False: "did not", None: "can't be told"}


def verdicts(judged: dict[Claim, Verdict]) -> list[str]:
    """The claims in a table by data set, then each with its figures, by what became of it."""
    became = [verdict.held for verdict in judged.values()]
    left = f"; {became.count(None)} can't be told before more is run" if None in became else ""
    about = (
        f"Of the paper's {len(judged)} claims {became.count(True)} held on every data set that they are judged on, "
        f"{became.count(False)} did not{left}. In the table - stands where a claim is not about a data set, or is not "
        "judged there because it takes a network trained at the paper's radius."
    )
    alike = judged[exclusive]
    if alike.held is not None:
        where = " and ".join(DATA[data] for data, held in alike.on.items() if held) or "no data set"
        about = (
            "**In the comparison that the paper leaves out, all trained under the same attack, SDA stands clearly "
            f"above both RBA and a CNN in the worst case on {where}.** {about}"
        )
    rows = [[claim.title, *(_word(verdict, data) for data in DATA)] for claim, verdict in judged.items()]
    parts = ["## What held", about, table(["claim", *DATA.values()], rows)]
    for title, held in (("Held", True), ("Did not hold", False), ("Can't be told yet", None)):
        mine = [_item(claim, verdict) for claim, verdict in judged.items() if verdict.held is held]
        parts += [f"### {title}", "\n".join(mine)] if mine else []
    return parts


def _word(verdict: Verdict, data: str) -> str:
    return VERDICTS[verdict.on[data]] if data in verdict.on else "-"


def _item(claim: Claim, verdict: Verdict) -> str:
    """A claim as an item of a list, with what the figures say as items under it."""
    end = ":" if verdict.sentences else "."
    return "\n".join([f"- **{claim.title}.** {claim.said}{end}", *(f"  - {words}" for words in verdict.sentences)])


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


def runs_table(measured: Records, folder: str) -> str:
    """How each run was made: length, seed, time, device, version."""
    if not measured:
        return "None yet: `gammacaps reproduce all`."
    rows = []
    for name, record in measured.items():
        figures, train, machine = record.figures, record.figures["train"], record.figures["machine"]
        attack = f"eps {train['eps']:g}, {train['attack_steps']} x {train['attack_step']:g}, ramp {train['eps_ramp']:g}"
        row = [f"[{name}]({folder}/{name}.json)", f"{record.steps:,}", str(figures["seed"])]
        row += [f"{figures['results']['data']['images']:,}", f"{train['lr']:g} {train['schedule']}"]
        attack = attack if train["robust"] else "none"
        row += [attack + on_loss(train) + ", standardized start" * train.get("standardize", False)]
        row += [f"{figures[key] / 60:.1f} min" for key in ("train_seconds", "measure_seconds")]
        row += [f"{machine['device_name']}, torch {machine['torch']}", figures["commit"] or machine["gammacaps"]]
        rows.append(row)
    words = "Times are by the clock; where several runs shared a machine, each took longer than alone."
    return f"{words}\n\n{table(RUNS, rows)}"
