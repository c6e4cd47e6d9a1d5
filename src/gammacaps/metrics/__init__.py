"""The paper's structural metrics: T (is there a parse tree?) and D (do capsules react to the input?)."""

from gammacaps.metrics.dynamic import DScore, d_score
from gammacaps.metrics.tree import TScore, t_score

__all__ = ["DScore", "TScore", "d_score", "t_score"]
