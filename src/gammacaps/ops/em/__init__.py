"""EM routing of matrix capsules: its formula, and what computes it faster.

formula       the mathematics, in plain torch
windows       which children a parent sees, as numbers
written_out   the gradient by hand, in plain torch: what the kernels compute
route         `vote_and_route`, which the layers call, and its choice between formula and kernels
kernels       Triton, for a GPU
"""

from gammacaps.ops.em.formula import EMRouted, em_route, gathered, parents_of, receptive_fields

__all__ = ["EMRouted", "em_route", "gathered", "parents_of", "receptive_fields"]
