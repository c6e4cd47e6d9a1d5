"""The paper's metrics: T (is there a parse tree?), D (do capsules react to the input?), usefulness (rho and gamma).

Beside them what is asked of any network: whether it tells what it has never seen, and is as sure as it is right.

>>> import gammacaps
>>> model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
>>> parse = model.parse(images[:20])
>>> 0 < gammacaps.metrics.t_score(parse.couplings[0]) < 1
tensor(True)
"""

from gammacaps.metrics.calibration import Bin, answered, calibration_error, reliability
from gammacaps.metrics.detection import auroc, false_alarms
from gammacaps.metrics.dynamic import DScore, d_score
from gammacaps.metrics.tree import TScore, t_score
from gammacaps.metrics.usefulness import Useful, chance_level, robust_usefulness, usefulness, worst_case

__all__ = [
    "Bin",
    "DScore",
    "TScore",
    "Useful",
    "answered",
    "auroc",
    "calibration_error",
    "chance_level",
    "d_score",
    "false_alarms",
    "reliability",
    "robust_usefulness",
    "t_score",
    "usefulness",
    "worst_case",
]
