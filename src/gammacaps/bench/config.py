"""What a benchmark is told. Free of torch, so that help is instant."""

from dataclasses import dataclass
from typing import Literal, get_args

from gammacaps.options import check_whole

TaskName = Literal[
    "forward",
    "attack",
    "training",
    "routing",
    "many",
    "matrix",
    "pgd",
    "short-training",
    "autoattack",
    "audit",
]


@dataclass(frozen=True)
class BenchConfig:
    """What to measure, and how often."""

    preset: Literal["paper", "small"] = "paper"
    """Network: the paper's, or a small one for a CPU."""
    tasks: tuple[TaskName, ...] = get_args(TaskName)
    """Scores alone; scores and the image's gradient; a training step under PGD-40; the first routed layer alone;
    routing to 1,000 capsules; matrix capsules; a whole PGD-40 on each preset; a training step of deep under PGD-10;
    AutoAttack and the audit of the shipped network mnist, on 1,000 images."""
    batches: tuple[int, ...] = ()
    """Images per pass; without it 32, 128 and 512 on a GPU, 8 on a CPU."""
    rounds: int = 15
    """Rounds, in each of which every way takes its turn."""
    quick: bool = False
    """Three rounds at most: for a first look."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds)
        for batch in self.batches:
            check_whole("batches", batch)
