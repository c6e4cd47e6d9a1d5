"""The best that we know to make of the paper's network on each data set, by another recipe."""

from pathlib import Path

from gammacaps.paper.parts.cells import Found
from gammacaps.paper.parts.fair import compared
from gammacaps.paper.plan import PARTS
from gammacaps.report.fill.again import options
from gammacaps.training.config import TrainConfig

WORDS = "The same network, trained by a recipe of our own instead of the paper's rate."


def section(found: Found, folder: Path) -> str:
    recipes = []
    for name in PARTS["better"]:
        if name in found:
            training = {k: v for k, v in found[name].figures["train"].items() if k not in ("device", "log_every")}
            recipes.append(f"    gammacaps train{options(training, vars(TrainConfig()))} --out runs/{name}")
    return "\n\n".join(text for text in (compared("better", found, WORDS), "\n".join(recipes)) if text)
