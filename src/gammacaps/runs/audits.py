"""audit.json: what an audit said of each capsule. `audit` writes it, and here stands what fits."""

from dataclasses import dataclass, field
from typing import Any, Literal

from gammacaps.runs.results import DataOf
from gammacaps.runs.typed_json import Misfit

FORMAT = 1
Kind = Literal["gamma-capsule", "non-robust", "not useful", "dead"]


@dataclass(frozen=True)
class Counts:
    """How many capsules there are of each kind, and how many are gamma-capsules at least for some class set."""

    gamma: int = field(metadata={"name": "gamma-capsule"})
    non_robust: int = field(metadata={"name": "non-robust"})
    not_useful: int = field(metadata={"name": "not useful"})
    dead: int
    some_set: int = field(metadata={"name": "gamma-capsule for some class set"})


@dataclass(frozen=True, kw_only=True)
class CountsAtEps(Counts):
    eps: float


@dataclass(frozen=True, kw_only=True)
class CountsAtTau(Counts):
    tau: float


@dataclass(frozen=True, kw_only=True)
class AuditedCapsule:
    """One capsule's kind and the figures behind it; those under attack are None where it is not useful."""

    capsule: int
    kind: Kind
    active: float
    classes: tuple[int, ...]
    agreement: float | None
    rho: float
    rho_interval: tuple[float, float]
    chance: float
    gamma: tuple[float, ...] | None
    gamma_interval: tuple[float, float] | None
    gamma_any: float | None
    gamma_any_classes: tuple[int, ...] | None
    gamma_capsule_at: tuple[float, ...]
    held_out: bool | None = None  # gamma > 0 on either half of the images for the classes found on the other


@dataclass(frozen=True, kw_only=True)
class AuditTry:
    """One of the attacks on pairs of an image and a capsule: how many it was made on, and how many crossed tau."""

    start: str
    loss: str
    steps: int
    pairs: int
    crossed: int


@dataclass(frozen=True, kw_only=True)
class AuditedLayer:
    layer: str
    of: int
    counts: Counts
    capsules: tuple[AuditedCapsule, ...]
    over_eps: tuple[CountsAtEps, ...]
    over_tau: tuple[CountsAtTau, ...]
    passes: int
    tries: tuple[AuditTry, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Parents:
    """How one layer's active capsules choose their parents."""

    below: str = field(metadata={"name": "from"})
    above: str = field(metadata={"name": "to"})
    T: float
    active: int
    single_parent: float | None
    margin: float | None


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """How often the class is told from which capsules are active, beside the network's own answers."""

    method: str
    capsules: int
    clean: float
    attacked: float
    network_clean: float
    network_attacked: float
    eps: float


@dataclass(frozen=True, kw_only=True)
class Audit:
    """All of audit.json."""

    format: Literal[1]
    run: str = ""
    model: dict[str, Any] = field(default_factory=dict)
    trained_under_attack: bool | None = None
    weights: str = ""
    trained_steps: int | None = None
    verdict: str
    data: DataOf
    class_names: tuple[str, ...]
    tau: float
    eps: tuple[float, ...]
    layers: tuple[AuditedLayer, ...]
    tree: tuple[Parents, ...]
    # Of gamma-capsules; older audits have none of these.
    held_out: int | None = None
    class_sets: int | None = None
    pairs_told_apart: int | None = None
    pattern: Pattern | None = None
    settings: dict[str, Any]
    machine: dict[str, Any]
    seconds: float

    def __post_init__(self) -> None:
        if not (self.eps and self.layers and self.tree):
            raise Misfit("eps, layers and tree each have one entry at least")
        for layer in self.layers:
            if not layer.capsules:
                raise Misfit(f"{layer.layer} has no capsules")
            for one in layer.capsules:
                if not 0 <= one.capsule < layer.of:
                    raise Misfit(f"capsule {one.capsule} of {layer.layer} is none of its {layer.of}")
                if not {*one.classes, *(one.gamma_any_classes or ())} <= {*range(len(self.class_names))}:
                    raise Misfit(f"capsule {one.capsule} of {layer.layer} speaks for a class that has no name")
                attacked = (one.gamma, one.gamma_interval, one.gamma_any, one.gamma_any_classes)
                useful = one.gamma is not None and len(one.gamma) == len(self.eps)
                if any((part is None) is useful for part in attacked):
                    raise Misfit(f"capsule {one.capsule} of {layer.layer} does not have all figures under attack")
