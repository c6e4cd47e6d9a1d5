"""A report as one page of HTML that needs nothing else: no server, no network, no file beside it."""

import base64
import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gammacaps.reporting.content import Fact
from gammacaps.reporting.headline import headline, title
from gammacaps.reporting.markup import missing
from gammacaps.reporting.section import Section
from gammacaps.reporting.sections import SECTIONS
from gammacaps.reporting.study import Study


@dataclass(frozen=True)
class Page:
    """All that the page shows, as plain data."""

    title: str
    run: str  # as it is named on the command line
    headline: tuple[Fact, ...] = ()  # three or four figures to remember
    contents: Mapping[str, Any] = field(default_factory=dict)  # what sections collected, by name; others are left out


def compose(study: Study) -> Page:
    """Collects what each section shows of a run, saying on standard error what it is at."""
    wanted = [section for section in SECTIONS if all(study.has(need) for need in section.needs)]
    contents = {section.name: section.collect(study) for section in wanted}
    return Page(title(study), str(study.run), headline(study), contents)


def render(page: Page) -> str:
    """The whole page, under 5 MB for any network of the paper's size."""
    shown = [(section.name, escape(section.title), _body(section, page)) for section in SECTIONS]
    drawn = [(name, title, body) for name, title, body in shown if body is not None]
    script = _part("page.js")
    # Only this very script may run, and nothing may be fetched, whatever a class or a folder is called.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sections = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-title" tabindex="-1">'
        f'<h2 id="{name}-title">{title}</h2>{body}</section>'
        for name, title, body in drawn
    )
    return Template(_part("page.html")).substitute(
        title=escape(page.title),
        script_hash=digest,
        style=_part("page.css"),
        script=script,
        links="".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in drawn),
        headline=_headline(page.headline),
        sections=sections,
    )


def _body(section: Section[Any], page: Page) -> str | None:
    """A section's HTML; None where it is left out."""
    if section.name not in page.contents:
        return None
    content = page.contents[section.name]
    if content is not None:
        return section.draw(content)
    return missing(f"gammacaps {section.made_by} {shlex.quote(page.run)}") if section.made_by else None


def _headline(shown: tuple[Fact, ...]) -> str:
    items = "".join(
        f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}<small>{escape(fact.note)}</small></dd></div>"
        for fact in shown
    )
    return f'<dl class="headline">{items}</dl>' if items else ""


def _part(name: str) -> str:
    return (files("gammacaps.reporting") / name).read_text(encoding="utf-8")
