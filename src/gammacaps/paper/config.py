"""What a reproduction is told. Free of torch, so that help is instant."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gammacaps.evaluation.config import check_attacks
from gammacaps.options import check_whole, part_of_work

PaperPart = Literal[
    "table1",
    "table2",
    "fgsm",
    "fair",
    "scaled",
    "beyond",
    "recipes",
    "confusion",
    "features",
    "hidden",
    "activations",
    "maps",
    "filters",
    "all",
]


@dataclass(frozen=True)
class ReproduceConfig:
    """How to reproduce. A run whose small file of figures is in the results folder is done, and not trained again."""

    runs: tuple[str, ...] = ()
    """Only these runs, whose figures are printed, and no page (see --dry-run for the names)."""
    share: str | None = None
    """Only one part of the runs, such as 2/5, for the second of five machines: all parts cost about the same. On one
    machine, start the same command several times instead: each process takes runs that no other is at."""
    steps: int | None = None
    """Length of each training; without it as --dry-run lists. Runs that were shorter are done again."""
    evaluate_images: int | None = None
    """Measure on so many test images at most; without it on all, and on 1,000 for the strong attacks."""
    suite: tuple[str, ...] = ()
    """Attacks whose worst case with PGD and FGSM the fair table shows: suites or attacks as in gammacaps evaluate;
    without it strong, for --quick two cheap ones. A worst case over fewer is made up for where the run's weights are
    still there."""
    quick: bool = False
    """A cut-down version of everything, about 10 minutes on 2 cores: small networks, few steps, few images."""
    dry_run: bool = False
    """List the runs with the minutes that each will take on an H200, and do nothing."""
    page: bool = False
    """Only write the page again, as markdown and as one HTML file, from the figures that are there."""
    results: Path | None = None
    """Folder of the figures, the page beside it; without it docs/reproduction, for --quick runs/quick/reproduction."""
    work: Path | None = None
    """Folder of the runs themselves, with their weights; without it runs/reproduction or runs/quick."""
    data_dir: str | None = None
    """Folder in which the named data sets lie."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        if self.suite:  # the table of attacks needs torch, and help shows this
            check_attacks(self.suite)
        for name in ("steps", "evaluate_images"):
            check_whole(name, getattr(self, name))
        self.part_of_work()

    def part_of_work(self) -> tuple[int, int]:
        """Which of how many parts of the runs are meant, from (1, 1)."""
        return part_of_work(self.share)

    @property
    def results_folder(self) -> Path:
        return self.results or Path("runs/quick/reproduction" if self.quick else "docs/reproduction")

    @property
    def work_folder(self) -> Path:
        return self.work or Path("runs/quick" if self.quick else "runs/reproduction")
