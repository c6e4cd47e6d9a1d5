"""What an evaluation is told. Free of torch, so that help is instant."""

from collections.abc import Iterable
from dataclasses import dataclass

from gammacaps.errors import InputError, check_choice
from gammacaps.imports import PLUGIN_HINT
from gammacaps.names import AttackLossName, NormName
from gammacaps.options import MOST, MOST_STEPS, check_amount, check_eps, check_seed, check_whole

STANDARD = ("standard",)
OF_ATTACKS = ("attacks", "norm", "sweep", "attack_step", "attack_steps", "restarts", "attack_loss")


@dataclass(frozen=True)
class EvaluateConfig:
    """How to evaluate. What is measured is kept in the run's folder: the same command continues where it stopped."""

    attacks: tuple[str, ...] = STANDARD
    """Suites (paper, quick, standard, strong, autoattack) or single attacks: noise, fgsm, pgd, pgd-margin, pgd-ce,
    pgd-dlr, vote, transfer, square, apgd-ce, apgd-t, fab-t, auto-square."""
    eps: tuple[float, ...] | None = None
    """Radii of the attacks; without it the training's, and for the paper's suite 0.1 0.3 0.5. In other norms than that
    of the training one that is usual for the data: L2 2 for mnist, 1.5 for fashion-mnist, 0.5 for others."""
    norm: NormName = "linf"
    """What of the change is at most eps: each pixel's (linf), its Euclidean length (l2), its sum over the pixels (l1).
    The figures of l2 and l1 are written to results-l2.json and results-l1.json."""
    sweep: tuple[float, ...] = ()
    """Radii of a curve of accuracy under PGD, drawn for all runs together."""
    data: str | None = None
    """Data set; without it the one that the network was trained on."""
    data_dir: str | None = None
    """Folder that holds the named data sets."""
    trust: bool = False
    """Import the Dataset that the run itself names, which runs its code: for runs of people you trust."""
    limit: int | None = None
    """Use only this many test images (balanced over the classes)."""
    minutes: float | None = None
    """Stop after this long; the same command later continues."""
    beyond: bool = False
    """Measure in place of the attacks what else it withstands, and write beyond.json and beyond.png: the norms L-inf,
    L2 and L1, turns and shifts, bad pictures, things it has never seen, and whether it is as sure as it is right."""
    unseen: tuple[str, ...] = ()
    """Data sets of things that the network has no class for, for --beyond; without it mnist, fashion-mini and smallnorb
    as far as they are on this machine."""
    checks: bool = True
    """Also check whether the figures can be believed."""
    attack_step: float | None = 0.01
    """Length of the steps of the paper's PGD; None: a tenth of eps, as the other attacks take, and as it is in other
    norms than L-inf."""
    attack_steps: int = 40
    """Number of the steps of the paper's PGD."""
    restarts: int = 1
    """Random starts of the paper's PGD; the worst result of each image counts."""
    attack_loss: AttackLossName = "margin"
    """What FGSM and the paper's PGD make large."""
    seed: int = 0
    """Seed of the attacks."""
    batch: int = 250
    """Images per pass."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        if self.attacks != STANDARD:  # the table needs torch, and help shows this
            check_attacks(self.attacks)
        check_eps(*(self.eps or ()), norm=self.norm)
        check_eps(*self.sweep, name="sweep", norm=self.norm)
        check_amount("attack_step", self.attack_step)
        check_whole("attack_steps", self.attack_steps, most=MOST_STEPS)
        for name in ("restarts", "batch", "limit"):
            check_whole(name, getattr(self, name))
        check_amount("minutes", self.minutes, zero=False, most=MOST)
        check_seed(self.seed)
        self._check_beyond()

    def _check_beyond(self) -> None:
        if self.unseen and not self.beyond:
            raise InputError("unseen is for --beyond: add it, or leave unseen out.")
        if not self.beyond:
            return
        for name in OF_ATTACKS:
            if getattr(self, name) != getattr(EvaluateConfig, name):
                raise InputError(f"--beyond has its own attacks and norms: leave {name} out.")
        if self.eps is not None and len(self.eps) != 1:
            raise InputError(f"--beyond takes one eps, that of L-inf, not {len(self.eps)}: leave the others out.")

    def named_attacks(self) -> tuple[str, ...]:
        """The single attacks, each once, in the order in which they are run."""
        from gammacaps.attacks.table import attacks_for

        return tuple(attack.name for attack in attacks_for(self.attacks) if attack.by_name)


def check_attacks(names: Iterable[str]) -> None:
    """Checks that each is an attack or a suite."""
    from gammacaps.attacks.table import attack_names, suites

    for name in names:
        check_choice("attack or suite", name, (*suites(), *attack_names()), also=PLUGIN_HINT)
