"""A section of the page as one object: what it needs of a run, what it takes from it, and how that is drawn."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gammacaps.errors import InputError
from gammacaps.reporting.study import Need, Study

Content = TypeVar("Content")


@dataclass(frozen=True)
class Section(Generic[Content]):
    """One section. `gammacaps.reporting.add_section` puts it on the page.

    Args:
        name: the anchor it is reached by, such as "scores".
        title: its heading, and its line in the contents.
        collect: works out of a run what it shows, as plain data; None where there is nothing to show.
        draw: that as HTML, with the pieces of `gammacaps.reporting.markup`; what comes from outside must be escaped.
        needs: what the run must have; the section is left out of the page where the run lacks it.
        first: whether it stands on the first screen; any other is folded, a line to open.
        beside: draws the contents of several networks, each with its name, as one; without it each has a column.
        made_by: the verb that makes what is missing, which the page then names where `collect` gave None; without
            one the section is left out.
    """

    name: str
    title: str
    collect: Callable[[Study], Content | None]
    draw: Callable[[Content], str]
    needs: tuple[Need, ...] = ()
    made_by: str = ""
    first: bool = False
    beside: Callable[[list[tuple[str, Content]]], str] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.name):
            raise InputError(
                f"A section's name has lower-case letters, digits and dashes, not {self.name!r}: change it."
            )
