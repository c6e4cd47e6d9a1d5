"""A report as one page of HTML that needs nothing else: no server, no network, no file beside it."""

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template

from gammacaps.report.content import Fact, Report
from gammacaps.report.sections import SECTIONS


def render(report: Report) -> str:
    """The whole page, under 5 MB for any network of the paper's size."""
    sections = [section for make in SECTIONS if (section := make(report)) is not None]
    script = _part("page.js")
    # Only this very script may run, and nothing may be fetched, whatever a class or a folder is called.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    links = "".join(f'<li><a href="#{section.anchor}">{section.title}</a></li>' for section in sections)
    body = "\n".join(
        f'<section id="{section.anchor}" aria-labelledby="{section.anchor}-title" tabindex="-1">'
        f'<h2 id="{section.anchor}-title">{section.title}</h2>{section.body}</section>'
        for section in sections
    )
    return Template(_part("page.html")).substitute(
        title=escape(report.title),
        script_hash=digest,
        style=_part("page.css"),
        script=script,
        links=links,
        headline=_headline(report.headline),
        sections=body,
    )


def _headline(shown: tuple[Fact, ...]) -> str:
    items = "".join(
        f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}<small>{escape(fact.note)}</small></dd></div>"
        for fact in shown
    )
    return f'<dl class="headline">{items}</dl>' if items else ""


def _part(name: str) -> str:
    return (files("gammacaps.report") / name).read_text(encoding="utf-8")
