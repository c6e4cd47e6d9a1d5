"""A report as one page of HTML that needs nothing else: no server, no network, no file beside it."""

import base64
import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from gammacaps.reporting.apart import Standing, not_apart, standing
from gammacaps.reporting.content import Sentence
from gammacaps.reporting.headline import hardest, headline, title, trained
from gammacaps.reporting.markup import missing, sentence
from gammacaps.reporting.section import Section
from gammacaps.reporting.sections import SECTIONS
from gammacaps.reporting.side_by_side import columns
from gammacaps.reporting.study import Study


@dataclass(frozen=True)
class Page:
    """All that the page shows of one network, as plain data."""

    title: str
    run: str  # as it is named on the command line
    verdict: tuple[Sentence, ...] = ()  # of the network, then of the measurement
    contents: Mapping[str, Any] = field(default_factory=dict)  # what sections collected, by name; others are left out
    data: str = ""  # what its images are called
    trained: str = ""  # how, in a few words
    standing: Standing | None = None  # how it stands under the attack that the verdict names

    @property
    def name(self) -> str:
        return Path(self.run).name


def compose(study: Study) -> Page:
    """Collects what each section shows of a run, saying on standard error what it is at."""
    wanted = [section for section in SECTIONS if all(study.has(need) for need in section.needs)]
    contents = {section.name: section.collect(study) for section in wanted}
    results = study.results
    stands = None if results is None else standing(results, hardest(study, results))
    return Page(title(study), str(study.run), headline(study), contents, study.test.name, trained(study), stands)


def render(*pages: Page) -> str:
    """The whole page of one network, under 5 MB for any of the paper's size; or of several side by side."""
    drawn = [(section, body) for section in SECTIONS if (body := _body(section, pages)) is not None]
    return one_file(
        _title(pages),
        _verdict(pages),
        "\n".join(_open(section, body) for section, body in drawn if section.first),
        "\n".join(folded(section.name, section.title, body) for section, body in drawn if not section.first),
        several=len(pages) > 1,
    )


def one_file(
    title: str, verdict: str, first: str, below: str, *, verb: str = "report", style: str = "", several: bool = False
) -> str:
    """A page in the report's design from its HTML: the verdict, the first screen, and the folds below it."""
    script = _part("page.js")
    # Only this very script may run, and nothing may be fetched, whatever a class or a folder is called.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_part("page.html")).substitute(
        title=escape(title),
        verb=escape(verb),
        script_hash=digest,
        style=_part("page.css") + _part("first.css") + style,
        script=script,
        verdict=verdict,
        several=" several" if several else "",
        first=first,
        folded=below,
    )


def _title(pages: tuple[Page, ...]) -> str:
    return pages[0].title if len(pages) == 1 else f"Networks for {pages[0].data}, side by side"


def _verdict(pages: tuple[Page, ...]) -> str:
    """Of the network first, of the measurement second and smaller."""
    if len(pages) == 1:
        return _sentences(pages[0])
    parts = [(f"{page.name}{f', {page.trained}' if page.trained else ''}", _sentences(page)) for page in pages]
    alike = not_apart(*(page.standing for page in pages)) if len(pages) == 2 else ""
    return columns(parts, heading="h2") + (f'<p class="alike">{escape(alike)}</p>' if alike else "")


def _sentences(page: Page) -> str:
    first, *rest = page.verdict or ((),)
    others = "".join(f"<p>{sentence(each)}</p>" for each in rest)
    return f'<div class="says"><p class="lead">{sentence(first)}</p>{others}</div>' if first else ""


def _open(section: Section[Any], body: str) -> str:
    return opened(section.name, section.title, body)


def opened(name: str, title: str, body: str) -> str:
    """A section of the first screen."""
    return f"{_opening(name)}{_heading(name, title)}{body}</section>"


def folded(name: str, title: str, body: str) -> str:
    """A section that is closed until it is wanted."""
    return f"{_opening(name)}<details><summary>{_heading(name, title)}</summary>{body}</details></section>"


def _opening(name: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title" tabindex="-1">'


def _heading(name: str, title: str) -> str:
    return f'<h2 id="{name}-title">{escape(title)}</h2>'


def _body(section: Section[Any], pages: tuple[Page, ...]) -> str | None:
    """A section's HTML; None where it is left out."""
    contents = [(page.name, page.contents.get(section.name)) for page in pages]
    bodies = [_own_body(section, page) for page in pages]
    if len(pages) == 1 or all(body is None for body in bodies):
        return bodies[0]
    if section.beside is not None and all(content is not None for _, content in contents):
        return section.beside(contents)
    nothing = '<p class="missing">Of this network there is nothing of the kind.</p>'
    return columns([(page.name, nothing if body is None else body) for page, body in zip(pages, bodies, strict=True)])


def _own_body(section: Section[Any], page: Page) -> str | None:
    if section.name not in page.contents:
        return None
    content = page.contents[section.name]
    if content is not None:
        return section.draw(content)
    return missing(f"gammacaps {section.made_by} {shlex.quote(page.run)}") if section.made_by else None


def _part(name: str) -> str:
    return (files("gammacaps.reporting") / name).read_text(encoding="utf-8")
