"""A run as one page that people can read: a table of sections, each with what it takes of a run and how it is drawn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gammacaps.reporting.section import Section as Section
    from gammacaps.reporting.sections import add_section as add_section
    from gammacaps.reporting.study import Study as Study

_WHERE = {"Section": "section", "Study": "study", "add_section": "sections"}

__all__ = ["Section", "Study", "add_section"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Imports torch only when something is used that needs it, so that the command line's help is instant."""
    if name in _WHERE:
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
