"""What the experiment is told, and which of it a network is known by."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from benchmarks.alike.settings import ATTACKED, CLEAN, SCALES, SETTINGS
from gammacaps.errors import check_choice
from gammacaps.evaluation.config import check_attacks
from gammacaps.names import PrecisionName
from gammacaps.options import MOST, MOST_STEPS, check_amount, check_seed, check_whole, part_of_work

# The options that all networks of one command share, and that each is known by.
SHARED = (
    *("scale", "steps", "batch", "lr", "attack_steps", "eps_ramp", "precision"),
    *("images", "audited", "attacks", "beyond"),
)


@dataclass(frozen=True)
class Options:
    """Train networks alike, measure them on the same images, and compare them."""

    out: Path = Path("alike.jsonl")
    """File of the networks, a line each; it grows."""
    runs: Path = Path("runs/alike")
    """Folder of the runs: a training or measurement that was stopped goes on there."""
    scale: Literal["small", "deep"] = "small"
    """Networks for a CPU, or the preset deep and a CNN with its convolutions for a GPU."""
    data: tuple[str, ...] = ("fashion-mnist-0.1",)
    """Data with the radius: mnist-0.3, fashion-mnist-0.1, fashion-mnist-0.3, smallnorb-0.03, fashion-mini-0.1."""
    networks: tuple[str, ...] = ("SDA", "RBA", "CNN")
    """SDA, RBA, CNN."""
    gamma: tuple[float, ...] = (0.0, 0.3)
    """Weights of the gamma objective; a CNN, which has no hidden capsules, is trained without it."""
    trained: tuple[str, ...] = (ATTACKED,)
    """How: attacked, clean. On clean images it is the same training at every radius."""
    seeds: tuple[int, ...] = (0, 1)
    """Seeds of weights and order."""
    steps: int = 4000
    """Steps of each training."""
    batch: int = 128
    """Images a step."""
    lr: float = 3e-3
    """Adam's rate, which falls as a cosine."""
    attack_steps: int | None = None
    """Steps of training's attack, together 1.5 eps long; those of the data's recipe unless told."""
    eps_ramp: float | None = None
    """Share of training over which eps grows; that of the data's recipe unless told."""
    precision: PrecisionName = "auto"
    """Numbers that convolutions are computed in, in training."""
    images: int = 1000
    """Test images of the attacks."""
    audited: int = 200
    """Test images of the strong audit; 0: no audit."""
    attacks: tuple[str, ...] = ("pgd", "pgd-ce", "apgd-ce", "apgd-t")
    """Attacks or suites of `gammacaps evaluate`, at the radius of the data."""
    beyond: int = 0
    """Test images of `gammacaps evaluate --beyond`; 0: not measured."""
    share: str | None = None
    """Part of the networks that this process makes, such as 2/5; each part takes about as long."""
    minutes: float | None = None
    """Begin no further network after so long."""
    dry_run: bool = False
    """List the networks and make none."""
    tables: bool = False
    """Print the tables of what is in the file and make nothing."""
    data_dir: str | None = None
    """Folder that holds the named data sets."""
    device: str = "auto"
    """auto, cpu, cuda."""

    def checked(self) -> "Options":
        """Itself, if it can be done: not at construction, where tyro would put a frame around the sentence."""
        for what, names, known in (
            ("setting of data", self.data, SETTINGS),
            ("network", self.networks, SCALES[self.scale]),
            ("way to train", self.trained, (ATTACKED, CLEAN)),
        ):
            for name in names:
                check_choice(what, name, known)
        for name in ("steps", "batch", "images"):
            check_whole(name, getattr(self, name))
        for name in ("audited", "beyond"):
            check_whole(name, getattr(self, name), least=0)
        check_whole("attack_steps", self.attack_steps, most=MOST_STEPS)
        for seed in self.seeds:
            check_seed(seed)
        for weight in self.gamma:
            check_amount("gamma", weight)
        check_amount("minutes", self.minutes, zero=False, most=MOST)
        check_attacks(self.attacks)
        part_of_work(self.share)
        return self

    def shared(self) -> dict[str, Any]:
        """What all networks of this command are known by, as JSON has it."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name in SHARED}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
