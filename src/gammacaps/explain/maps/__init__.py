"""Matrices that show a network at work: which capsules are active, where they lead, which classes are mixed up."""

from gammacaps.explain.maps.activations import ActivationMap, ClassMap, activation_map, class_map
from gammacaps.explain.maps.confusion import Confusion, confusion_map
from gammacaps.explain.maps.couplings import CouplingMap, coupling_map

__all__ = [
    "ActivationMap",
    "ClassMap",
    "Confusion",
    "CouplingMap",
    "activation_map",
    "class_map",
    "confusion_map",
    "coupling_map",
]
