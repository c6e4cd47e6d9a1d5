"""What a training run is told: every choice, with its default. Free of torch, so that help is instant."""

import contextlib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError, check_choice
from gammacaps.files import check_plain, parse_json
from gammacaps.names import (
    NORM_TITLES,
    VECTOR_PRESETS,
    AttackLossName,
    LossName,
    PrecisionName,
    PresetName,
    Schedule,
    StartName,
    TrainNormName,
)
from gammacaps.options import MOST, MOST_STEPS, as_number, check_amount, check_eps, check_seed, check_whole
from gammacaps.radius import radius
from gammacaps.runs.typed_json import Misfit, read_as

GAMMA = 0.3  # the weight of the gamma objective where nothing else is asked for


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults train under the paper's attack, with a rate and a ramp that learn sooner."""

    data: str = "fashion-mini"
    """Data set: mnist, fashion-mnist, smallnorb, fashion-mini, an .npz file, a folder of class folders, one that
    `gammacaps data --store` wrote, which is not read into memory, or a torch Dataset as package.module:name."""
    data_dir: str | None = None
    """Folder that holds the named data sets; without it they are looked for and then downloaded."""
    size: int | None = None
    """Side to resize the images to; without it the data's own (28 for smallnorb)."""
    skip_unreadable: bool = False
    """Of a folder of pictures: leave out files that can't be read, and list them in config.json, instead of an
    error."""
    preset: PresetName = "small"
    """Network: the paper's, a deep one that withstands more, a small one of that kind for a CPU, a residual one for
    larger images, matrix capsules with EM routing, a plain CNN."""
    routing: str = "sda"
    """Routing rule of the paper, small, deep and residual presets: sda, rba, or one that a module adds which the
    environment names in GAMMACAPS_PLUGINS."""
    model: tuple[str, ...] = ()
    """Further changes to the preset as NAME=VALUE, such as hidden=[64] iterations=2."""
    standardize: bool = False
    """Start the first convolution as if the images had mean 0 and deviation 1: pale ones are learned sooner. Of the
    presets that pad images with zeros (all but the paper's) the border then stands out."""
    shift: int = 0
    """Move each image at random by up to this many pixels, its edges continued."""
    flip: bool = False
    """Mirror half of the images, left to right: for things, not for digits."""
    turn: float = 0.0
    """Turn each image at random by up to this many degrees, its edges continued."""
    zoom: float = 0.0
    """Scale each image at random by up to 1 +- this share: 0.1 is from 0.9 to 1.1."""
    brightness: float = 0.0
    """Make each image brighter or darker at random, by up to this; pixels stay from 0 to 1."""
    contrast: float = 0.0
    """Change each image's contrast at random: its difference from its mean, times up to 1 +- this."""
    loss: LossName = "own"
    """The loss that training minimises: the network's own (margin loss of capsules, spread loss of matrix capsules,
    cross-entropy of a CNN), or (ce-log, for capsules) the cross-entropy of lengths as shares of their sum, to which
    it is the same whether all capsules are long or short."""
    smoothing: float = 0.0
    """Label smoothing: an image counts by this share as of every class alike. For the margin loss the lengths that it
    asks for, 0.9 and 0.1, are moved by this share toward their mean; for the spread loss its margin is less by it."""
    robust: bool = True
    """Train under attack, or (--no-robust) on clean images."""
    eps: float = 0.3
    """The attack's radius."""
    norm: TrainNormName = "linf"
    """What of the change is at most eps: each pixel's (linf), or its Euclidean length (l2), for which eps and
    attack_step are to be given too, such as 1.5 and 0.15."""
    attack_step: float = 0.01
    """Length of the attack's steps."""
    attack_steps: int = 40
    """Number of the attack's steps; 1 is the single-step training FGSM-RS, with a step of 1.25 eps."""
    attack_loss: AttackLossName = "margin"
    """What the attack makes large."""
    attack_start: StartName = "uniform"
    """Where the attack starts: anywhere in the ball, drawn for each pixel, or (blocks, for linf) for half of the images
    at corners of it that are alike over random stripes and squares, against masked gradients at large eps."""
    eps_ramp: float = 0.25
    """Share of training over which eps grows from 0 to its value; 0 is the paper's full eps from the start."""
    gamma: float | None = None
    """Weight of the gamma objective, by which each hidden capsule learns to be active for a set of classes alone and so
    becomes a gamma-capsule; 0 for none. By default 0.3 for the small, deep and residual presets, 0 for the others."""
    tree: float = 0.0
    """Weight of the tree objective, by which hidden capsules that speak for the image's class learn to give their votes
    to that class, so that parse trees agree with the capsules' names (0.1 is much); for training with gamma alone."""
    trades: float = 0.0
    """Weight of TRADES: clean loss plus this times the divergence under attack; 0 trains on attacked images."""
    steps: int | None = None
    """Length of training in steps."""
    epochs: float | None = None
    """Length of training in passes over the data; 20 where no length is given."""
    minutes: float | None = None
    """Length of training in minutes; with steps or epochs too, whichever ends first. The rate and eps then follow the
    clock, so that only steps and epochs give the same weights again."""
    batch: int = 128
    """Images per step, over all processes together."""
    accumulate: int = 1
    """Parts that each process splits its images of a step into, one after the other: less memory. A step is the same
    but for the order of its sums; under attack that rounding grows, and long runs end at other weights."""
    recompute_encoder: bool = False
    """Compute the encoder again for the gradient instead of keeping it: less memory, more time, the same weights."""
    lr: float = 3e-3
    """Adam's learning rate; the paper's is 0.001, constant."""
    schedule: Schedule = "cosine"
    """Learning rate over training: the paper's constant, cosine to 0, or decay by 0.96 each 20,000 steps."""
    weight_decay: float = 0.0
    """Weight decay (AdamW): each step takes the learning rate times this off the weights, but not off biases."""
    weight_perturbation: float = 0.0
    """Adversarial weight perturbation: each step learns at weights moved up the loss by this share of their norm, so
    that more of what is learned holds for other images (0.005 is usual); two more passes per step, 0 for none."""
    ema: float = 0.99
    """Decay of the weights' running mean, which is then what is saved (0.999 is usual); 0 for none."""
    reconstruction: float = 0.0005
    """Weight of the reconstruction loss, summed over pixels, against the clean image."""
    validate: int = 0
    """Hold back this many training images, balanced over the classes and drawn by the seed, and keep the weights with
    which most of them are right: in the worst case over two short attacks, or clean where training is. 0 for none."""
    validate_on: str | None = None
    """With validate: take those images from this set's test split instead, for a set whose training images can't stand
    for new ones; report figures of other images than these."""
    validate_every: int = 500
    """Steps between measurements on the images held back; the end of training is measured too."""
    seed: int = 0
    """Seed of the initial weights, the order of the images and the attack's starts."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""
    precision: PrecisionName = "auto"
    """Numbers that convolutions are computed in, in training: bfloat16 on a GPU and float32 on a CPU (auto), or one of
    them. A CPU with AVX-512 BF16 or AMX trains faster in bfloat16; capsules are always computed in float32."""
    compile: bool = True
    """Compile EM routing on a GPU (never on a CPU)."""
    log_every: int = 20
    """Steps between lines of metrics.jsonl."""
    checkpoint_every: int = 500
    """Steps between checkpoints."""
    tensorboard: bool = False
    """Also write scalars and pictures for TensorBoard (pip install 'gammacaps[tensorboard]')."""

    def __post_init__(self) -> None:
        for name in ("batch", "accumulate", "log_every", "checkpoint_every", "validate_every", "steps", "size"):
            check_whole(name, getattr(self, name))
        check_whole("attack_steps", self.attack_steps, most=MOST_STEPS)
        for name in ("shift", "validate"):
            check_whole(name, getattr(self, name), least=0)
        check_amount("turn", self.turn, most=180)
        for name in ("brightness", "contrast", "weight_perturbation"):
            check_amount(name, getattr(self, name), most=1)
        for name in ("attack_step", "trades", "reconstruction", "gamma", "tree", "weight_decay"):
            check_amount(name, getattr(self, name))
        for name in ("epochs", "minutes"):
            check_amount(name, getattr(self, name), zero=False, most=MOST)
        check_eps(self.eps, norm=self.norm)
        if self.validate_on is not None and not self.validate:
            raise InputError(f"validate_on {self.validate_on} needs the number of its images: give validate as well.")
        if self.validate_on is not None and self.validate_on == self.data:
            raise InputError(
                f"validate_on {self.validate_on} is the set that is trained on, and figures are of its test images: "
                "name another set, or leave it out to hold training images back."
            )
        if self.attack_start == "blocks" and self.norm != "linf":
            raise InputError(f"attack_start blocks is for the norm linf, not {self.norm}: leave it out.")
        if self.routing != "sda" and self.preset not in VECTOR_PRESETS:
            several = ", ".join(VECTOR_PRESETS)
            raise InputError(f"routing {self.routing} is for the presets {several}, not {self.preset}: leave it out.")
        if self.gamma and self.preset == "cnn":
            raise InputError("gamma is for networks with hidden capsules, and a cnn has none: leave it out.")
        if self.tree and not self.gamma_weight():
            raise InputError("tree is for training with the gamma objective: give gamma as well, or leave tree out.")
        if self.loss == "ce-log" and self.preset == "cnn":
            raise InputError("loss ce-log is for capsules; a cnn learns from cross-entropy anyway: leave it out.")
        check_amount("lr", self.lr, zero=False, most=1e30)  # float32 ends soon after
        _check("eps_ramp", 0 <= self.eps_ramp <= 1, "from 0 to 1", self)
        for name in ("ema", "zoom", "smoothing"):
            _check(name, 0 <= getattr(self, name) < 1, "from 0 to less than 1", self)
        check_seed(self.seed)
        model_changes(self)

    def gamma_weight(self) -> float:
        """The weight of the gamma objective: what was asked for, else what the preset is trained with."""
        if self.gamma is not None:
            return self.gamma
        return GAMMA if self.preset in ("small", "deep", "residual") else 0.0

    def held_back(self) -> int:
        """How many training images are held back from training."""
        return self.validate if self.validate_on is None else 0

    def way(self) -> str:
        """How it was trained, in a few words; an attack without a norm is one in L-inf."""
        norm = "" if self.norm == "linf" else f"{NORM_TITLES[self.norm]}, "
        return f"under attack, {norm}eps {radius(self.eps)}" if self.robust else "on clean images"

    def falls_short(self) -> str:
        """A sentence where the attack's steps together are shorter than eps; empty where they are not."""
        reach = self.attack_steps * self.attack_step
        if not self.robust or self.attack_steps == 1 or reach >= self.eps:
            return ""
        return (
            f"{self.attack_steps} attack steps of {self.attack_step:g} reach {reach:g}, less than eps {self.eps:g}: "
            "give more or longer ones, or training hardly knows the attack that it is measured by."
        )

    def run_name(self) -> str:
        """What a run's folder is called where nobody names it."""
        routing = f"-{self.routing}" if self.preset in VECTOR_PRESETS else ""
        kind = "robust" if self.robust else "standard"
        data = Path(self.data.rpartition(":")[2]).stem  # of a Dataset's import path the name alone
        return f"{data}-{self.preset}{routing}-{kind}-seed{self.seed}"

    def total_steps(self, images: int) -> int | None:
        """Steps that steps and epochs allow for this many images; None where only the minutes count."""
        limits = []
        if self.steps is not None:
            limits.append(self.steps)
        epochs = 20.0 if self.steps is self.minutes is self.epochs is None else self.epochs
        if epochs is not None:
            limits.append(max(1, round(epochs * max(1, images // self.batch))))
        return min(limits) if limits else None


def model_changes(config: TrainConfig) -> dict[str, Any]:
    """The NAME=VALUE pairs of `model`, their values read as JSON."""
    changes = {}
    for pair in config.model:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"A change to the preset is written NAME=VALUE, such as hidden=[64], not {pair!r}.")
        try:
            changes[name] = parse_json(value)
        except ValueError:
            changes[name] = value
    return changes


def read_config_file(path: Path) -> TrainConfig:
    """The configuration in a .json or .toml file: its fields, or those under "train" in a run's config.json."""
    try:
        text = path.read_bytes().decode("utf-8")
        values = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text)
        check_plain(values)
    except OSError as error:
        raise InputError(f"The configuration {path} can't be read ({error.strerror}): check the path.") from None
    except RecursionError:
        raise InputError(f"The configuration {path} is nested too deeply: write it again.") from None
    except ValueError as error:
        raise InputError(f"The configuration {path} is not valid {path.suffix[1:] or 'JSON'} ({error}).") from None
    if isinstance(values, dict) and isinstance(values.get("train"), dict):
        values = values["train"]
    try:
        return config_from(_written(values) if isinstance(values, dict) else values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _written(values: dict[str, Any]) -> dict[str, Any]:
    """The values with a text such as "8/255", where a number is wanted, as that number."""
    wanted = {one.name for one in fields(TrainConfig) if one.type in (float, float | None)}
    read = dict(values)
    for name in wanted & values.keys():
        if isinstance(values[name], str) and "/" in values[name]:
            with contextlib.suppress(ValueError):  # then it is refused like any other text
                read[name] = as_number(values[name])
    return read


def config_from(values: Any) -> TrainConfig:
    """A configuration from plain values, each checked."""
    if not isinstance(values, dict):
        raise InputError("A configuration is a table of names and values.")
    for name in values:
        check_choice("option of training", name, (one.name for one in fields(TrainConfig)))
    try:
        return read_as(TrainConfig, values)
    except Misfit as error:
        raise InputError(f"{error}.") from None


def _check(name: str, holds: bool, must: str, config: TrainConfig) -> None:
    if not holds:
        raise InputError(f"{name} must be {must}, not {getattr(config, name)}.")
