"""The sections of the page, top to bottom, each a module that holds all of it: a new one is a line here."""

from typing import Any

from gammacaps.errors import InputError, check_choice
from gammacaps.reporting.section import Section
from gammacaps.reporting.sections.audit import AUDIT
from gammacaps.reporting.sections.checks import CHECKS
from gammacaps.reporting.sections.classes import CLASSES
from gammacaps.reporting.sections.hidden import HIDDEN
from gammacaps.reporting.sections.maps import MAPS
from gammacaps.reporting.sections.network import NETWORK
from gammacaps.reporting.sections.rerun import RERUN
from gammacaps.reporting.sections.scores import SCORES
from gammacaps.reporting.sections.strength import STRENGTH
from gammacaps.reporting.sections.trees import TREES

SECTIONS: list[Section[Any]] = [
    NETWORK,
    SCORES,
    CHECKS,
    STRENGTH,
    CLASSES,
    HIDDEN,
    TREES,
    AUDIT,
    MAPS,
    RERUN,
]


def add_section(section: Section[Any], *, before: str = "rerun") -> None:
    """Puts a section of your own on every page made from now on, before the one that is named."""
    names = [each.name for each in SECTIONS]
    if section.name in names:
        raise InputError(f"There is a section {section.name} already: give yours another name.")
    check_choice("section", before, names)
    SECTIONS.insert(names.index(before), section)
