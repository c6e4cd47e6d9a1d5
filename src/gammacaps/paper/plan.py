"""Which runs each table and figure needs, as data: their names, how they are trained, and what is measured of them."""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

from gammacaps.errors import InputError, check_choice
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.expected import EPS
from gammacaps.runs.train_config import TrainConfig

DATA = {"mnist": "MNIST", "fashion-mnist": "fashionMNIST", "smallnorb": "smallNORB"}
RULES = {"rba": "RBA", "em": "EM", "sda": "SDA", "cnn": "CNN"}
PALE = "smallnorb"  # whose pixels deviate so little that the paper's radii are measured in a tenth too
JUDGED = tuple(data for data in DATA if data != PALE)  # on which ours are trained under attack at the paper's radius
TENTH = (0.01, 0.03, 0.05)  # what they are where each image is scaled to a deviation of 1
SHOWN = "fashion-mnist"  # the data whose capsules the paper looks at
STEPS = {"standard": 3000, "robust": 4000, "entropy": 4000, "long": 15000}
MOMENT = 5000  # the paper's first look into a network that it trains for 15,000 steps

# On clean images: the paper's rate. What is measured is the weights' running mean, which stands for the steps around a
# moment.
CLEAN: dict[str, Any] = {"preset": "paper", "eps": 0.3, "lr": 1e-3, "schedule": "constant", "ema": 0.999}
# Under attack: the paper's radius, by 10 steps of 0.04 where the paper takes 40 of 0.01, which take three times as
# long, and a higher rate that falls to 0.
ATTACKED: dict[str, Any] = {
    **CLEAN,
    "attack_step": 0.04,
    "attack_steps": 10,
    "eps_ramp": 0.1,
    "lr": 3e-3,
    "schedule": "cosine",
}
# In 4,000 steps at 0.3 on fashionMNIST: more clean images are right than with the shorter ramp (docs/decisions.md).
GRADUAL: dict[str, Any] = {"eps_ramp": 0.5}
# As under attack, but all that a network learns from and is attacked on is cross-entropy, as a CNN's own loss is.
ENTROPY: dict[str, Any] = {"loss": "ce-log", "attack_loss": "ce-log"}
ENTROPY_CNN: dict[str, Any] = {"attack_loss": "ce"}
# smallNORB's images are so pale that at 0.3 they can be turned into one another (see the page), and at 0.1 next to none
# of the test images stood in the worst case (docs/decisions.md). A network stays at chance at the higher rate.
NORB: dict[str, Any] = {"eps": 0.03, "attack_step": 0.006, "eps_ramp": 0.3, "lr": 1e-3, "standardize": True}
# Gritzman's rate and batch. A step of EM under attack costs many of the others, so it gets fewer.
EM: dict[str, Any] = {**CLEAN, "preset": "matrix", "lr": 3e-3, "schedule": "decay", "batch": 64}
EM_ROBUST: dict[str, Any] = {**ATTACKED, "preset": "matrix", "batch": 64}
PLAIN: dict[str, Any] = {"preset": "cnn"}
EM_STEPS = {"standard": 6000, "robust": 600}
IMAGES = {"em": 2000, PALE: 10000}  # test images, of which smallNORB has 48,600 with both cameras
# Of the cut-down version.
QUICK: dict[str, Any] = {
    "preset": "small",
    "gamma": 0.0,
    "batch": 32,
    "attack_steps": 3,
    "attack_step": 0.15,
    "eps_ramp": 0.5,
}
QUICK_RATE: dict[str, Any] = {"lr": 3e-3, "schedule": "cosine", "ema": 0.9, "log_every": 10}
QUICK_EM: dict[str, Any] = {"preset": "matrix", "model": ("filters=16", "primary_types=2", "types=[2, 2]")}
AS_THE_OTHERS: dict[str, Any] = {}
QUICK_STEPS = {"standard": 100, "robust": 100, "entropy": 100, "long": 150}
QUICK_IMAGES = 50
QUICK_SUITE = ("noise", "pgd-margin")
QUICK_INPUTS = (4, 50)  # starts and steps of a generated input


class Training(NamedTuple):
    """What the trainings of one rule's networks take: on clean images, under attack, on cross-entropy, cut down."""

    routing: str = "sda"  # which EM and a CNN have no use for
    clean: dict[str, Any] = CLEAN
    attacked: dict[str, Any] = ATTACKED
    entropy: dict[str, Any] = ENTROPY
    quick: dict[str, Any] = AS_THE_OTHERS


TRAININGS = {
    "rba": Training("rba"),
    "em": Training(clean=EM, attacked=EM_ROBUST, quick=QUICK_EM),
    "sda": Training("sda"),
    "cnn": Training(clean={**CLEAN, **PLAIN}, attacked={**ATTACKED, **PLAIN}, entropy=ENTROPY_CNN, quick=PLAIN),
}
assert set(TRAININGS) == set(RULES)


@dataclass(frozen=True)
class Planned:
    """One training, and what is measured of it at which of its steps."""

    name: str
    data: str
    rule: str  # a key of RULES
    kind: str  # standard (on clean images), robust (under attack), long (for longer) or entropy (all on cross-entropy)
    config: TrainConfig
    moments: tuple[int, ...]  # steps at which it is measured; the last is its end
    images: int | None = None  # test images that it is measured on; None is all
    worst: tuple[tuple[float, int | None], ...] = ()  # radii at which the suite attacks, and on how many images
    generate: bool = False  # whether inputs are generated for its capsules


def name_of(data: str, rule: str, kind: str, seed: int = 0) -> str:
    return f"{data}-{rule}-{kind}-{seed}"


STANDARD = tuple(name_of(d, r, "standard", s) for d in DATA for r, s in (("rba", 0), ("em", 0), ("sda", 0), ("sda", 1)))
GAMMA = tuple(name_of(d, "sda", "robust", s) for d in DATA for s in (0, 1))
ALIKE = ("sda", "rba", "cnn")  # what costs about as much a step, so that it can have the same training
FAIR = tuple(
    name_of(d, r, kind, s)
    for d in DATA
    for kind, r, s in (
        *(("robust", rule, seed) for rule, seed in (("sda", 0), ("sda", 1), ("rba", 0), ("cnn", 0), ("em", 0))),
        *(("entropy", rule, 0) for rule in ALIKE if d in JUDGED),
    )
)
UNATTACKED = tuple(name for name in STANDARD if "-sda-" not in name)  # the paper's rivals in its tables under attack
LONG = name_of(SHOWN, "sda", "long")
LOOKED_AT = (LONG, name_of(SHOWN, "rba", "standard"))
PARTS: dict[str, tuple[str, ...]] = {
    "table1": STANDARD,
    "table2": (*GAMMA, LONG, *UNATTACKED),
    "fgsm": (*GAMMA, LONG, *UNATTACKED),
    "fair": FAIR,
    "confusion": LOOKED_AT[:1],
    "features": LOOKED_AT,
    "hidden": LOOKED_AT[:1],
    "activations": LOOKED_AT,
    "maps": tuple(name_of(SHOWN, r, "standard") for r in ("em", "rba", "sda")),
    "filters": (LONG, name_of(SHOWN, "sda", "standard")),
}


def plan(options: ReproduceConfig) -> dict[str, Planned]:
    """All runs by name, in the order in which they are best made: what the most parts need comes first."""
    runs = [_planned(options, SHOWN, "sda", "long", 0)]
    runs += [_planned(options, data, "sda", "robust", 0) for data in DATA]
    runs += [_planned(options, data, rule, "standard", 0) for data in DATA for rule in ("rba", "sda", "em")]
    runs += [_planned(options, data, rule, "robust", 0) for data in DATA for rule in ("rba", "cnn", "em")]
    runs += [_planned(options, data, "sda", kind, 1) for kind in ("robust", "standard") for data in DATA]
    runs += [_planned(options, data, rule, "entropy", 0) for data in JUDGED for rule in ALIKE]
    return {run.name: run for run in runs}


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


def _planned(options: ReproduceConfig, data: str, rule: str, kind: str, seed: int) -> Planned:
    check_choice("rule of the reproduction", rule, TRAININGS)
    check_choice("kind of training", kind, STEPS)
    training, robust = TRAININGS[rule], kind != "standard"
    fields = training.attacked if robust else training.clean
    steps = options.steps or (QUICK_STEPS if options.quick else STEPS)[kind]
    if rule == "em" and not options.quick:
        steps = max(1, steps * EM_STEPS[kind] // STEPS[kind])
    if robust and data == PALE:
        fields = {**fields, **NORB}
    elif kind != "long" and robust and data == "fashion-mnist":
        fields = {**fields, **GRADUAL}
    if kind == "entropy":
        fields = {**fields, **training.entropy}
    if options.quick:
        fields = {**fields, **QUICK, **QUICK_RATE, **training.quick}
    where: dict[str, Any] = {"data": data, "data_dir": options.data_dir, "device": options.device}
    config = TrainConfig(robust=robust, routing=training.routing, seed=seed, steps=steps, **where, **fields)
    name = name_of(data, rule, kind, seed)
    looked = name in PARTS["features"]
    first = MOMENT if steps > MOMENT else steps // 3
    moments = (first, steps) if kind == "long" and first else (steps,)
    images = IMAGES.get(rule, IMAGES.get(data))
    return Planned(
        name, data, rule, kind, config, moments, images, _worst(options, config.eps, rule, kind, seed), looked
    )


def _worst(
    options: ReproduceConfig, trained_at: float, rule: str, kind: str, seed: int
) -> tuple[tuple[float, int | None], ...]:
    """The strong attacks are for what is compared: the first seed's networks of the fair table."""
    if kind not in ("robust", "entropy") or seed > 0:
        return ()
    if options.quick:
        return ((trained_at, QUICK_IMAGES),)
    if kind == "entropy" or rule == "em":
        return ((trained_at, 200 if rule == "em" else 1000),)
    return tuple((eps, 1000) for eps in sorted({trained_at, *EPS}))


def limited(images: int | None, options: ReproduceConfig) -> int | None:
    """How many test images at most: what is planned, and not more than asked for."""
    limits = [n for n in (images, options.evaluate_images, QUICK_IMAGES if options.quick else None) if n is not None]
    return min(limits) if limits else None


def same_training(one: TrainConfig, other: TrainConfig) -> bool:
    """Whether two trainings give the same network, wherever they are made."""
    there = dataclasses.replace(one, device=other.device, data_dir=other.data_dir)
    return there == other
