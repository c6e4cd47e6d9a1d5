"""The mathematics of routing as functions, and the table of routing rules, to which `add_rule` adds one's own.

>>> import torch
>>> from gammacaps.ops import route
>>> poses, weight = torch.randn(2, 5, 4), torch.randn(5, 3, 4, 6)  # 5 capsules of size 4 vote for 3 of size 6
>>> routed = route(poses, weight, rule="sda")
>>> routed.poses.shape, routed.couplings.shape
(torch.Size([2, 3, 6]), torch.Size([2, 5, 3]))
"""

from gammacaps.ops.em import EMRouted, em_route
from gammacaps.ops.routing.route import Routed, route
from gammacaps.ops.routing.rules import RoutingRule, add_rule, rule_named, rule_names
from gammacaps.ops.vectors import length, squash

__all__ = [
    "EMRouted",
    "Routed",
    "RoutingRule",
    "add_rule",
    "em_route",
    "length",
    "route",
    "rule_named",
    "rule_names",
    "squash",
]
