"""Gamma-capsule networks: capsule networks that are robust to attack and that people can look inside."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gammacaps._version import __version__ as __version__

if TYPE_CHECKING:
    from gammacaps.data import load_data as load_data
    from gammacaps.models import create as create
    from gammacaps.models import load as load
    from gammacaps.models import save as save

_WHERE = {
    "load_data": "gammacaps.data",
    "create": "gammacaps.models",
    "load": "gammacaps.models",
    "save": "gammacaps.models",
}
_PARTS = ("attacks", "audit", "data", "evaluation", "explain", "metrics", "models", "nn", "ops", "report", "training")

__all__ = ["create", "load", "load_data", "save"]


def __getattr__(name: str) -> Any:
    """Imports torch only when something is used that needs it, so that the command line's help is instant."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name in _PARTS:
        return import_module(f"gammacaps.{name}")
    raise AttributeError(f"module 'gammacaps' has no attribute {name!r}")
