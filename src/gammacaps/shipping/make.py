"""From a recipe to a shipped network: trained, halved, attacked, audited, looked into and told of on a card."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.run import audit_run
from gammacaps.beyond.run import beyond_run
from gammacaps.errors import InputError, check_choice
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.run import evaluate_run
from gammacaps.names import SHIPPED
from gammacaps.options import check_eps, check_whole
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.study import open_study
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig, read_config_file
from gammacaps.shipping.card import card
from gammacaps.shipping.halve import halve
from gammacaps.training.go_on import train_or_go_on

STAGES = ("train", "halve", "evaluate", "audit", "beyond", "inputs", "card")


@dataclass(frozen=True)
class MakeConfig:
    """How a network is made. The same command goes on where it was stopped, and repeats nothing that is there."""

    runs: Path = Path("runs/shipping")
    """Folder for the run and its halved copy."""
    until: str = "card"
    """The last stage: train, halve, evaluate, audit, beyond, inputs or card."""
    data: str | None = None
    """Data set of the figures, where it is not the one of the recipe."""
    eps: tuple[float, ...] | None = None
    """Radii of the figures; without them the training's."""
    images: int | None = 10_000
    """Test images that are attacked."""
    audited: int = 200
    """Test images of the strong audit."""
    beyond: int = 1000
    """Test images of what else it withstands."""
    batch: int = 1000
    """Images a pass of the attacks."""
    minutes: float | None = None
    """Stop the attacks after so long; the same command later goes on."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        check_choice("stage", self.until, STAGES)
        check_eps(*(self.eps or ()))
        for name in ("images", "audited", "beyond", "batch"):
            check_whole(name, getattr(self, name))


def make(recipe: Path, name: str, config: MakeConfig, *, shipped: Path = SHIPPED) -> Path:
    """Makes the network `name` as the recipe, a file for `gammacaps train --config`, says; the last stage's folder."""
    asked = read_config_file(recipe)
    run, halved = config.runs / name, config.runs / f"{name}-halved"
    folders: dict[str, Callable[[], Path]] = {
        "train": lambda: _trained(asked, recipe, run, config),
        "halve": lambda: _halved(run, halved, config),
        "evaluate": lambda: _evaluated(halved, config),
        "audit": lambda: _audited(halved, config),
        "beyond": lambda: _measured_beyond(halved, config),
        "inputs": lambda: _generated(halved, config),
        "card": lambda: card(halved, name, shipped=shipped),
    }
    folder = run
    for stage in STAGES[: STAGES.index(config.until) + 1]:
        folder = folders[stage]()
    return folder


def _trained(asked: TrainConfig, recipe: Path, run: Path, config: MakeConfig) -> Path:
    """The run of the recipe, begun or gone on with; one that was begun by other options is refused."""
    train_or_go_on(dataclasses.replace(asked, device=config.device), run, f"{recipe} has")
    return run


def _halved(run: Path, halved: Path, config: MakeConfig) -> Path:
    """The run in half precision; one that was made of another training, or for other data, is refused."""
    if not halved.exists():
        halve(run, halved, data=config.data)
        return halved
    of, old = Run(run), Run(halved)
    made_of = (vars(old.config.train) if old.config.train else {}, old.steps, old.stored.get("measured_on"))
    train = vars(of.config.train) if of.config.train else {}
    if made_of != ({**train, "data_dir": None}, of.steps, of.data_name(config.data)):
        raise InputError(f"{halved} was not made of {run} for these data: move it away, and the command makes it anew.")
    return halved


def _evaluated(halved: Path, config: MakeConfig) -> Path:
    """Attacked by the strong suite; what each attack made of each image is kept, so that nothing is done twice."""
    settings = EvaluateConfig(
        attacks=("strong",),
        eps=config.eps,
        limit=config.images,
        batch=config.batch,
        minutes=config.minutes,
        device=config.device,
    )
    if not evaluate_run(halved, settings)["complete"]:
        raise InputError(f"The attacks on {halved} are not through: the same command goes on with them.")
    return halved


def _audited(halved: Path, config: MakeConfig) -> Path:
    """Audited by the strong attacks; an audit of these very weights by the same settings is not made again."""
    settings = AuditConfig(strong=True, limit=config.audited, device=config.device)
    of = Run(halved)
    audit = of.audit()
    if audit is None or audit["weights"] != identity(of.model()) or not _same(audit["settings"], settings):
        audit_run(halved, settings)
    return halved


def _measured_beyond(halved: Path, config: MakeConfig) -> Path:
    """What else it withstands, which its card tells too; what was measured before is taken from the folder."""
    beyond_run(halved, EvaluateConfig(beyond=True, limit=config.beyond, device=config.device))
    return halved


def _generated(halved: Path, config: MakeConfig) -> Path:
    """The inputs of its capsules, which the report and the explorer then need not generate on the user's machine."""
    _ = open_study(halved, ReportConfig(device=config.device)).capsules
    return halved


def _same(stored: dict[str, object], settings: AuditConfig) -> bool:
    return all(stored.get(name) == getattr(settings, name) for name in ("strong", "limit", "tau", "attack_steps"))
