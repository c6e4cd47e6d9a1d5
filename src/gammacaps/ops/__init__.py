"""The mathematics of routing as functions."""

from gammacaps.ops.em import EMRouted, em_route
from gammacaps.ops.reference import length, squash
from gammacaps.ops.route import Routed, route

__all__ = ["EMRouted", "Routed", "em_route", "length", "route", "squash"]
