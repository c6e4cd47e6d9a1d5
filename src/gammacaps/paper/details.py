"""The details of the reproduction: every claim with its figures, every table, and how each run was made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gammacaps.paper.claims.claim import Claim, Verdict
from gammacaps.paper.notes import notes
from gammacaps.paper.plan import PARTS
from gammacaps.paper.readings import Records
from gammacaps.paper.sections import (
    activations,
    attacked,
    beyond_paper,
    confusion,
    fair_table,
    features,
    filters,
    hidden,
    in_scale,
    maps,
    recipe_trials,
    shipped_networks,
    structure,
)
from gammacaps.paper.sections.cells import on_loss, table
from gammacaps.paper.trainings import PLATEAU_RULE

SHIPPED = "shipped"  # the one section that needs no run of the plan
SECTIONS: dict[str, tuple[str, Callable[[Records, Path], str]]] = {
    "table1": ("Table 1: structure", structure.section),
    "table2": ("Table 2: accuracy under PGD", attacked.pgd_section),
    "fgsm": ("Accuracy under FGSM", attacked.fgsm_section),
    "fair": ("The fair table: all trained under the same attack", fair_table.section),
    "scaled": ("smallNORB in deviations", in_scale.section),
    "beyond": ("Beyond the paper", beyond_paper.section),
    SHIPPED: ("Networks that ship", shipped_networks.section),
    "recipes": ("Recipes for fashionMNIST at eps 0.3", recipe_trials.section),
    "confusion": ("Table 3: the confusion matrix", confusion.section),
    "features": ("What class capsules look for", features.section),
    "activations": ("Activations by generated inputs", activations.section),
    "hidden": ("What hidden capsules look for", hidden.section),
    "maps": ("Activation maps", maps.section),
    "filters": ("Filters of the first convolution", filters.section),
}
assert set(SECTIONS) == {*PARTS, SHIPPED}
ANCHORS = {
    part: title.lower().replace(":", "").replace(",", "").replace(".", "").replace(" ", "-")
    for part, (title, _) in SECTIONS.items()
}


def details(measured: Records, folder: Path, judged: dict[Claim, Verdict], facts: dict[str, Any] | None) -> str:
    """All figures as markdown; pictures go into the folder, in which the file lies."""
    parts = ["# The reproduction in figures"]
    parts.append(
        f"The figures behind [the page](../{folder.name}.md), made by `gammacaps reproduce` from the files beside this "
        "one, never by hand."
    )
    parts += ["## The claims, with their figures", "\n".join(_item(*each) for each in judged.items())]
    parts += ["## Read this beside the figures", notes(measured, facts)]
    for title, section in SECTIONS.values():
        parts += [f"## {title}", section(measured, folder)]
    parts += ["## The runs", runs_table(measured)]
    return "\n\n".join(parts) + "\n"


def _item(claim: Claim, verdict: Verdict) -> str:
    """A claim as an item of a list, with what the figures say as items under it."""
    lines = [f"- **{claim.title}.** {claim.said}. {claim.rule}"]
    return "\n".join([*lines, *(f"  - {words}" for words in verdict.sentences)])


RUNS = (
    "run",
    "steps",
    "seed",
    "images",
    "rate",
    "attack in training",
    "training",
    "measuring",
    "machine",
    "commit",
)


def runs_table(measured: Records) -> str:
    """How each run was made: length, seed, time, device, version."""
    if not measured:
        return "None yet: `gammacaps reproduce all`."
    rows = []
    for name, record in measured.items():
        figures, train, machine = record.figures, record.figures["train"], record.figures["machine"]
        attack = f"eps {train['eps']:g}, {train['attack_steps']} x {train['attack_step']:g}, ramp {train['eps_ramp']:g}"
        row = [f"[{name}]({name}.json)", f"{record.steps:,}", str(figures["seed"])]
        row += [f"{figures['results']['data']['images']:,}", f"{train['lr']:g} {train['schedule']}"]
        attack = attack if train["robust"] else "none"
        row += [attack + on_loss(train) + ", standardized start" * train.get("standardize", False)]
        row += [f"{figures[key] / 60:.1f} min" for key in ("train_seconds", "measure_seconds")]
        row += [f"{machine['device_name']}, torch {machine['torch']}", figures["commit"] or machine["gammacaps"]]
        rows.append(row)
    words = f"{PLATEAU_RULE} Times are by the clock; where several runs shared a machine, each took longer than alone."
    return f"{words}\n\n{table(RUNS, rows)}"
