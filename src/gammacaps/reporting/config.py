"""What a report, or an explanation, is told. Free of torch, so that help is instant."""

from dataclasses import dataclass

from gammacaps.names import SearchName
from gammacaps.options import MOST_STEPS, check_amount, check_eps, check_seed, check_tau, check_whole


@dataclass(frozen=True)
class ReportConfig:
    """How to look into a run. Its figures are those of results.json and audit.json: nothing is measured again."""

    data: str | None = None
    """Data set; without it the one that the network was trained on."""
    data_dir: str | None = None
    """Folder that holds the named data sets."""
    trust: bool = False
    """Import the Dataset that the run itself names, which runs its code: for runs of people you trust."""
    beside: str | None = None
    """Another network for the same classes, a run's folder or a shipped name: its class capsules are shown beside."""
    others: str | None = None
    """Another data set, whose images the network has no class for: what does it take them for?"""
    starts: int | None = None
    """Random starts of each generated input; without it the paper's 60 on a GPU, and 10 on a CPU."""
    steps: int | None = None
    """Steps of each generated input; without it the paper's 1000 on a GPU, and 200 on a CPU."""
    search: SearchName = "improved"
    """How inputs are searched: so that the capsule stays active under noise and small shifts, or as the paper does."""
    class_penalty: float = 1e-4
    """Price on the brightness of class capsules' inputs, by which the best starts are chosen; in the paper's search all
    steps have it, which leaves what does not matter dark. The paper's is 0."""
    hidden_penalty: float = 1e-5
    """The same for hidden capsules; this is the paper's."""
    capsules: int = 64
    """Capsules of a hidden layer to generate inputs for; of more, those that test images activate most."""
    trees: int = 3
    """Test images, each of another class, to show the parse trees of."""
    eps: float | None = None
    """Radius of the attack on them, L-inf; without it the training's."""
    tau: float | None = None
    """A capsule counts as active when it is longer than this; without it what the audit takes, or would take."""
    images: int = 1000
    """Test images, balanced over the classes, that the maps are made of."""
    seed: int = 0
    """Seed of the generated inputs, the attack and the choice of images."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        for name in ("starts", "steps"):
            check_whole(name, getattr(self, name), most=MOST_STEPS)
        for name in ("capsules", "images"):
            check_whole(name, getattr(self, name))
        check_whole("trees", self.trees, least=0)
        for name in ("class_penalty", "hidden_penalty"):
            check_amount(name, getattr(self, name))
        check_eps(*(() if self.eps is None else (self.eps,)))
        check_tau(*(() if self.tau is None else (self.tau,)))
        check_seed(self.seed)
