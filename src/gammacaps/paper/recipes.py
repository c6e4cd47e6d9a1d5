"""How fashionMNIST is learned at eps 0.3: recipes, tried on held-back training images, and the rule that takes one."""

from pathlib import Path
from typing import Any

from gammacaps.paper.record import Record, path_of, read_record

TRIAL_STEPS = 5000
RECIPES: dict[str, dict[str, Any]] = {
    "base": {},  # as on MNIST
    "ramp": {"eps_ramp": 0.5},
    "rate": {"eps_ramp": 0.5, "lr": 1e-3},
    "entropy": {"eps_ramp": 0.5},  # and all on cross-entropy, which is told network by network
    "length": {},  # as on MNIST, three times as long
}
RECIPE_STEPS = {name: 3 * TRIAL_STEPS if name == "length" else TRIAL_STEPS for name in RECIPES}
UNDECIDED = "ramp"  # what is shown as planned before one is taken
LEARNED = 0.1  # the share of a class's clean images above which it counts as learned
RECIPE_RULE = (
    "Of the recipes, tried with SDA on 5,000 held-back training images, the one is taken for all networks under which "
    f"the most classes are learned (each above {LEARNED:.0%} clean), and of equals the one that keeps the most images "
    "under PGD-40 at eps 0.3."
)


def recipe_fields(recipe: str, entropy: dict[str, Any]) -> dict[str, Any]:
    """What a recipe changes in a training; `entropy` is what cross-entropy means for the network."""
    return {**RECIPES[recipe], **(entropy if recipe == "entropy" else {})}


def decided_recipe(folder: Path, names: tuple[str, ...]) -> str | None:
    """The recipe that the figures of all trials in a folder choose; None where some are missing."""
    paths = [path_of(folder, name) for name in names]
    if not all(path.exists() for path in paths):
        return None
    return best_recipe([read_record(path) for path in paths])


def best_recipe(trials: list[Record]) -> str:
    """By the rule; of equals the first in the table."""
    best = max(trials, key=lambda trial: (learned(trial), kept(trial)))
    return str(best.figures["kind"]).removeprefix("recipe-")


def learned(trial: Record) -> int:
    """How many classes are learned."""
    rows = trial.figures["results"]["confusion"]
    return sum(row[label] / max(1, sum(row)) > LEARNED for label, row in enumerate(rows))


def kept(trial: Record) -> float:
    """The share of held-back images that stand under PGD at the radius of training."""
    row = trial.accuracy("pgd", trial.figures["train"]["eps"])
    return 0.0 if row is None else row["accuracy"]
