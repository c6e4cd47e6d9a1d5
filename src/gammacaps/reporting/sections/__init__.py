"""The sections of the page, top to bottom, each a module that holds all of it: a new one is a line here."""

from typing import Any

from gammacaps.errors import check_choice, check_name_is_free
from gammacaps.reporting.section import Section
from gammacaps.reporting.sections.audit import AUDIT
from gammacaps.reporting.sections.beyond import BEYOND_SECTION
from gammacaps.reporting.sections.checks import CHECKS
from gammacaps.reporting.sections.classes import CLASSES
from gammacaps.reporting.sections.hidden import HIDDEN
from gammacaps.reporting.sections.images import IMAGES
from gammacaps.reporting.sections.maps import MAPS
from gammacaps.reporting.sections.network import NETWORK
from gammacaps.reporting.sections.rerun import RERUN
from gammacaps.reporting.sections.scores import SCORES
from gammacaps.reporting.sections.strength import STRENGTH
from gammacaps.reporting.sections.trees import TREES
from gammacaps.reporting.sections.worst_curve import WORST_CURVE

SECTIONS: list[Section[Any]] = [
    IMAGES,  # the first screen
    WORST_CURVE,
    HIDDEN,
    NETWORK,  # folded
    SCORES,
    CHECKS,
    STRENGTH,
    BEYOND_SECTION,
    CLASSES,
    TREES,
    AUDIT,
    MAPS,
    RERUN,
]
_OURS = tuple(section.name for section in SECTIONS)


def add_section(section: Section[Any], *, before: str = "rerun") -> None:
    """Puts a section of your own on every page made from now on, before the one that is named.

    Added again under its name, it is replaced where it stands; the sections of gammacaps stay.
    """
    check_name_is_free("a section", section.name, _OURS)
    names = [each.name for each in SECTIONS]
    check_choice("section", before, names)
    if section.name in names:
        SECTIONS[names.index(section.name)] = section
    else:
        SECTIONS.insert(names.index(before), section)
