"""Recipes for fashionMNIST at eps 0.3, tried on training images that were held back."""

from pathlib import Path

from gammacaps.paper.plan import TRIED
from gammacaps.paper.readings import Records, unlearned
from gammacaps.paper.recipes import RECIPE_RULE, best_recipe, learned
from gammacaps.paper.sections.cells import missing, percent, table

HEADER = ["recipe", "steps", "rate", "ramp", "loss", "clean", "PGD-40, eps 0.3", "classes learned", "below 5%"]


def section(measured: Records, folder: Path) -> str:
    trials = [measured[name] for name in TRIED if name in measured]
    rows = []
    for trial in trials:
        train = trial.figures["train"]
        recipe = trial.figures["kind"].removeprefix("recipe-")
        row = [recipe, f"{trial.steps:,}", f"{train['lr']:g}", f"{train['eps_ramp']:g}", train["loss"]]
        row += [percent(trial.figures["results"]["clean"]), percent(trial.accuracy("pgd", train["eps"]))]
        rows.append([*row, f"{learned(trial)} of 10", ", ".join(unlearned(trial)) or "none"])
    taken = f"Taken: **{best_recipe(trials)}**." if len(trials) == len(TRIED) else ""
    texts = (RECIPE_RULE, table(HEADER, rows) if rows else "", taken, missing("recipes", measured))
    return "\n\n".join(text for text in texts if text)
