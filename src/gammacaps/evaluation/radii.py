"""The radii of an evaluation where nobody names them."""

from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.robustness import PAPER_EPS
from gammacaps.runs.run import EPS, Run

# Of MNIST as in Tramer and Boneh (2019), of others as it is for CIFAR-10; L1 of fashionMNIST in the ratio of MNIST's.
USUAL = {
    "mnist": {"l2": 2.0, "l1": 10.0},
    "fashion-mnist": {"l2": 1.5, "l1": 7.5},
    "fashion-mini": {"l2": 1.5, "l1": 7.5},
}
OTHERS = {"l2": 0.5, "l1": 12.0}


def radii(config: EvaluateConfig, run: Run, data: str = "") -> tuple[float, ...]:
    """Those asked for; else the paper's for its suite, and for others the one that the network was trained at."""
    if config.eps is not None:
        return config.eps
    if config.norm == "linf" and config.attacks == ("paper",):
        return PAPER_EPS
    return (usual_radius(config.norm, run, data),)


def usual_radius(norm: str, run: Run, data: str) -> float:
    """The radius of the training where it was in this norm; else one that is usual for the data."""
    trained = run.radius_in(norm)
    if trained is not None:
        return trained
    return EPS if norm == "linf" else USUAL.get(data, OTHERS)[norm]
