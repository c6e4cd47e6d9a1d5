"""The paper's metrics: T (is there a parse tree?), D (do capsules react to the input?), usefulness (rho and gamma).

>>> import gammacaps
>>> model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
>>> parse = model.parse(images[:20])
>>> 0 < gammacaps.metrics.t_score(parse.couplings[0]) < 1
tensor(True)
"""

from gammacaps.metrics.dynamic import DScore, d_score
from gammacaps.metrics.tree import TScore, t_score
from gammacaps.metrics.usefulness import Useful, chance_level, robust_usefulness, usefulness, worst_case

__all__ = [
    "DScore",
    "TScore",
    "Useful",
    "chance_level",
    "d_score",
    "robust_usefulness",
    "t_score",
    "usefulness",
    "worst_case",
]
