"""The mathematics of routing as functions, and the table of routing rules, to which `add_rule` adds one's own."""

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
