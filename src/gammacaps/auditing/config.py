"""What an audit is told. Free of torch, so that help is instant."""

from dataclasses import dataclass

from gammacaps.options import MOST_STEPS, check_amount, check_eps, check_seed, check_tau, check_whole


@dataclass(frozen=True)
class AuditConfig:
    """How to audit. The default attack is about as strong on capsules as 40 steps of 0.01, in a quarter of the time."""

    data: str | None = None
    """Data set; without it the one that the network was trained on."""
    data_dir: str | None = None
    """Folder that holds the named data sets."""
    trust: bool = False
    """Import the Dataset that the run itself names, which runs its code: for runs of people you trust."""
    limit: int | None = 500
    """Use only this many test images (balanced over the classes)."""
    tau: float = 0.5
    """A capsule is active if it is longer than this; a length is the probability that its feature is there."""
    taus: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7)
    """Further thresholds to show how the verdict depends on tau; each costs time."""
    eps: tuple[float, ...] = ()
    """Radii of the attack, L-inf; the verdict is at the largest. Without them half and all of the one that the network
    was trained with (0.1 where none is known)."""
    attack_step: float = 1.0
    """The attack's first step in units of eps; the steps fall linearly to 0."""
    attack_steps: int = 10
    """Number of the attack's steps."""
    strong: bool = False
    """Attack harder: after the usual attack also four times the steps from two random points, from the image itself
    and from where an attack on the class ends, and another loss for capsules so long that squash is flat."""
    layers: tuple[str, ...] = ()
    """Layers to audit, such as primary or class; without them the hidden ones."""
    capsules: int = 64
    """Attack at most this many capsules of a layer, drawn at random; the primary layer has hundreds."""
    seed: int = 0
    """Seed of the attack's starts and of the capsules drawn."""
    batch: int | None = None
    """Images per pass; without it 64 on a CPU, 512 on a GPU."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        check_eps(*self.eps)
        check_tau(self.tau, *self.taus)
        check_amount("attack_step", self.attack_step)
        check_whole("attack_steps", self.attack_steps, most=MOST_STEPS // 4 if self.strong else MOST_STEPS)
        for name in ("batch", "limit", "capsules"):
            check_whole(name, getattr(self, name))
        check_seed(self.seed)
