"""Which runs each table and figure needs, as data: their names, and what is measured of them."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gammacaps.data.scaled import SPAN
from gammacaps.errors import InputError, check_choice
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.expected import EPS
from gammacaps.paper.recipes import RECIPE_STEPS, RECIPES, UNDECIDED, decided_recipe
from gammacaps.paper.trainings import (
    MOMENT,
    PLATEAU,
    QUICK_IMAGES,
    QUICK_STEPS,
    TRAININGS,
    Plateau,
    longest_training,
    training_fields,
)
from gammacaps.runs.train_config import TrainConfig

DATA = {"mnist": "MNIST", "fashion-mnist": "fashionMNIST", "smallnorb": "smallNORB"}
SCALED = "smallnorb-scaled"  # smallNORB again, each image scaled to mean 0 and deviation 1
TITLES = {**DATA, SCALED: "smallNORB, scaled"}
RULES = {"rba": "RBA", "em": "EM", "em2": "EM, 2 iterations", "sda": "SDA", "cnn": "CNN"}
PALE = "smallnorb"  # whose pixels deviate so little that the paper's radii are measured in a tenth too
JUDGED = tuple(data for data in DATA if data != PALE)  # on which ours are trained under attack at the paper's radius
TENTH = (0.01, 0.03, 0.05)  # what they are where each image is scaled to a deviation of 1
SHOWN = "fashion-mnist"  # the data whose capsules the paper looks at
SEEDS = (0, 1)
ALIKE = ("sda", "rba", "cnn")  # vector capsules and what they are compared with
IMAGES = {"em": 2000, "em2": 2000, PALE: 10000, SCALED: 10000}  # test images, of which smallNORB has 48,600
WORST_IMAGES = 1000


@dataclass(frozen=True)
class Planned:
    """One training, and what is measured of it at which of its steps."""

    name: str
    data: str
    rule: str  # a key of RULES
    kind: str  # standard (on clean images), robust (under attack), long, entropy, gamma, deep or recipe-...
    config: TrainConfig
    moments: tuple[int, ...]  # steps at which it is measured; the last is its end
    images: int | None = None  # test images that it is measured on; None is all
    worst: tuple[tuple[float, int | None], ...] = ()  # radii at which the suite attacks, and on how many images
    generate: bool = False  # whether inputs are generated for its capsules
    plateau: Plateau | None = None  # ends it before its last moment, once it learns no more
    needs: tuple[str, ...] = ()  # runs that must be measured before it can be planned

    @property
    def radii(self) -> tuple[float, ...]:
        """The paper's radii as they are told on these data."""
        return radii_on(self.data)

    @property
    def held_back(self) -> bool:
        """Whether it is measured on held-back training images, and never on test images."""
        return self.kind.startswith("recipe-")


def radii_on(data: str) -> tuple[float, ...]:
    return tuple(eps / SPAN for eps in EPS) if data == SCALED else EPS


def name_of(data: str, rule: str, kind: str, seed: int = 0) -> str:
    return f"{data}-{rule}-{kind}-{seed}"


def names_of(on: Iterable[str], rules: Iterable[str], kind: str, seeds: Iterable[int] = SEEDS) -> tuple[str, ...]:
    """Runs of one kind of training, data set by data set."""
    rules, seeds = tuple(rules), tuple(seeds)
    return tuple(name_of(data, rule, kind, seed) for data in on for rule in rules for seed in seeds)


STANDARD = names_of(DATA, ("rba", "em", "em2", "sda"), "standard")
GAMMA = names_of(DATA, ("sda",), "robust")
FAIR = (*names_of(DATA, (*ALIKE, "em"), "robust"), *names_of(JUDGED, ALIKE, "entropy"))
UNATTACKED = names_of(DATA, ("rba", "em"), "standard")  # the paper's rivals in its tables under attack
LONGS = names_of((SHOWN,), ("sda",), "long")
LONG = LONGS[0]
SHOWN_RBA = names_of((SHOWN,), ("rba",), "standard")
LOOKED_AT = (LONG, SHOWN_RBA[0])  # whose generated inputs are shown
IN_SCALE = (*names_of((SCALED,), ("rba", "em", "sda"), "standard"), *names_of((SCALED,), ("sda", "rba"), "robust"))
BEYOND = (*names_of(DATA, ("sda",), "gamma"), *names_of(DATA, ("sda",), "deep"))
TRIED = tuple(name_of(SHOWN, "sda", f"recipe-{recipe}") for recipe in RECIPES)
PARTS: dict[str, tuple[str, ...]] = {
    "table1": STANDARD,
    "table2": (*GAMMA, LONG, *UNATTACKED),
    "fgsm": (*GAMMA, LONG, *UNATTACKED),
    "fair": FAIR,
    "scaled": IN_SCALE,
    "beyond": BEYOND,
    "recipes": TRIED,
    "confusion": LONGS,
    "features": (*LONGS, *SHOWN_RBA),
    "hidden": LONGS,
    "activations": (*LONGS, *SHOWN_RBA),
    "maps": names_of((SHOWN,), ("em", "rba", "sda"), "standard", (0,)),
    "filters": (LONG, name_of(SHOWN, "sda", "standard")),
}
# The cut-down version: what each table needs to have a row.
IN_QUICK = (
    *names_of(DATA, ("rba", "em", "sda"), "standard", (0,)),
    *names_of(DATA, (*ALIKE, "em"), "robust", (0,)),
    *names_of((SHOWN,), ALIKE, "entropy", (0,)),
    *names_of((SHOWN,), ("sda",), "gamma", (0,)),
    *names_of((SCALED,), ("rba",), "standard", (0,)),
    *names_of((SCALED,), ("sda",), "robust", (0,)),
    *names_of((SHOWN,), ("sda",), "recipe-ramp", (0,)),
    LONG,
)


def plan(options: ReproduceConfig) -> dict[str, Planned]:
    """All runs by name, in the order in which they are best made: what others hang on and the most parts need first."""
    recipe = UNDECIDED if options.quick else decided_recipe(options.results_folder, TRIED)
    runs = [_planned(options, SHOWN, "sda", f"recipe-{name}", 0, None) for name in RECIPES]
    runs += [_planned(options, SHOWN, "sda", "long", seed, recipe) for seed in SEEDS]
    for seed in SEEDS:
        runs += [_planned(options, data, rule, "robust", seed, recipe) for data in DATA for rule in ALIKE]
        runs += [_planned(options, data, rule, "standard", seed, recipe) for data in DATA for rule in ("rba", "sda")]
        runs += [_planned(options, data, rule, "standard", seed, recipe) for data in DATA for rule in ("em", "em2")]
        runs += [_planned(options, data, "em", "robust", seed, recipe) for data in DATA]
    for seed in SEEDS:
        runs += [_planned(options, SCALED, rule, "robust", seed, recipe) for rule in ("sda", "rba")]
        runs += [_planned(options, SCALED, rule, "standard", seed, recipe) for rule in ("rba", "em", "sda")]
        runs += [_planned(options, data, rule, "entropy", seed, recipe) for data in JUDGED for rule in ALIKE]
        runs += [_planned(options, data, "sda", kind, seed, recipe) for kind in ("gamma", "deep") for data in DATA]
    return {run.name: run for run in runs if not options.quick or run.name in IN_QUICK}


def chosen(options: ReproduceConfig, parts: tuple[str, ...]) -> list[Planned]:
    """The runs that the parts need, or those of them that are named."""
    runs = plan(options)
    for name in options.runs:
        check_choice("run of the reproduction", name, runs)
    parts = tuple(PARTS) if "all" in parts else parts
    needed = {name for part in parts for name in PARTS[part]}
    elsewhere = [name for name in options.runs if name not in needed]
    if elsewhere:
        raise InputError(f"{elsewhere[0]} is no run of {', '.join(parts)}: leave that out to name any run.")
    wanted = set(options.runs) or needed
    return [run for name, run in runs.items() if name in wanted]


def _planned(options: ReproduceConfig, data: str, rule: str, kind: str, seed: int, recipe: str | None) -> Planned:
    check_choice("rule of the reproduction", rule, TRAININGS)
    tried = kind.removeprefix("recipe-") if kind.startswith("recipe-") else None
    steps = RECIPE_STEPS[tried] if tried is not None else longest_training(rule, kind)
    if options.quick:
        steps = QUICK_STEPS.get(kind, QUICK_STEPS["robust"])
    steps = options.steps or steps
    fields = training_fields(data, rule, kind, tried or recipe or UNDECIDED, quick=options.quick)
    where: dict[str, Any] = {"data": data, "data_dir": options.data_dir, "device": options.device}
    config = TrainConfig(robust=kind != "standard", seed=seed, steps=steps, **where, **fields)
    name = name_of(data, rule, kind, seed)
    first = MOMENT if steps > MOMENT else steps // 3
    moments = (first, steps) if kind == "long" and first else (steps,)
    fixed = options.quick or options.steps is not None or kind != "standard"
    undecided = recipe is None and tried is None and data == SHOWN and kind in ("robust", "entropy", "gamma", "deep")
    return Planned(
        name,
        data,
        rule,
        kind,
        config,
        moments,
        images=IMAGES.get(rule, IMAGES.get(data)),
        worst=_worst(options, config.eps, data, rule, kind),
        generate=name in PARTS["features"],
        plateau=None if fixed else PLATEAU[rule],
        needs=TRIED if undecided else (),
    )


def _worst(
    options: ReproduceConfig, trained_at: float, data: str, rule: str, kind: str
) -> tuple[tuple[float, int | None], ...]:
    """The strong attacks are for what was trained under attack: at its radius, and of the fair table at the paper's."""
    if kind in ("standard", "long") or kind.startswith("recipe-"):
        return ()
    if options.quick:
        return ((trained_at, QUICK_IMAGES),)
    if kind != "robust" or rule == "em":
        return ((trained_at, WORST_IMAGES),)
    return tuple((eps, WORST_IMAGES) for eps in sorted({trained_at, *radii_on(data)}))


def limited(images: int | None, options: ReproduceConfig) -> int | None:
    """How many test images at most: what is planned, and not more than asked for."""
    limits = [n for n in (images, options.evaluate_images, QUICK_IMAGES if options.quick else None) if n is not None]
    return min(limits) if limits else None


def same_training(one: TrainConfig, other: TrainConfig) -> bool:
    """Whether two trainings give the same network, wherever they are made."""
    there = dataclasses.replace(one, device=other.device, data_dir=other.data_dir)
    return there == other
