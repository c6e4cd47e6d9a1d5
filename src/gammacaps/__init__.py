"""Gamma-capsule networks: capsule networks that are robust to attack and that people can look inside.

    >>> import gammacaps
    >>> model = gammacaps.load("fashion-mini")  # a network that comes with the package, trained under attack
    >>> images, labels = gammacaps.load_data("fashion-mini")
    >>> model(images[:5]).shape
    torch.Size([5, 10])

Verbs: train, evaluate, audit, report, and check (or robustness) for any torch classifier. Networks: create, load, save,
Normalized. Data: load_data. Parts: attacks, data, explain, metrics, models, nn, ops. What you gave and can't be used is
an InputError.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gammacaps._version import __version__ as __version__

if TYPE_CHECKING:
    from gammacaps import attacks as attacks
    from gammacaps import data as data
    from gammacaps import explain as explain
    from gammacaps import metrics as metrics
    from gammacaps import models as models
    from gammacaps import nn as nn
    from gammacaps import ops as ops
    from gammacaps.api import audit as audit
    from gammacaps.api import check as check
    from gammacaps.api import evaluate as evaluate
    from gammacaps.api import report as report
    from gammacaps.api import robustness as robustness
    from gammacaps.api import train as train
    from gammacaps.data import load_data as load_data
    from gammacaps.errors import InputError as InputError
    from gammacaps.models import Normalized as Normalized
    from gammacaps.models import create as create
    from gammacaps.models import load as load
    from gammacaps.models import save as save

_HOMES = {
    **dict.fromkeys(("audit", "check", "evaluate", "report", "robustness", "train"), "gammacaps.api"),
    **dict.fromkeys(("Normalized", "create", "load", "save"), "gammacaps.models"),
    "load_data": "gammacaps.data",
    "InputError": "gammacaps.errors",
}
_PARTS = ("attacks", "data", "explain", "metrics", "models", "nn", "ops")

__all__ = [
    "InputError",
    "Normalized",
    "attacks",
    "audit",
    "check",
    "create",
    "data",
    "evaluate",
    "explain",
    "load",
    "load_data",
    "metrics",
    "models",
    "nn",
    "ops",
    "report",
    "robustness",
    "save",
    "train",
]


def __getattr__(name: str) -> Any:
    """Imports torch only when something is used that needs it, so that the command line's help is instant."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in (*_PARTS, "reporting"):
        return import_module(f"gammacaps.{name}")
    raise AttributeError(f"module 'gammacaps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*__all__, "__doc__", "__version__"))
