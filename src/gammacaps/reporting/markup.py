"""Pieces of the page: pictures, figures, tables, charts. Whatever comes from outside is escaped here."""

import base64
from html import escape

from gammacaps.names import VerdictWord
from gammacaps.reporting.chart import chart, mark, number
from gammacaps.reporting.content import Curve, Fact, Figure, Picture, Table

VERDICTS: dict[VerdictWord, tuple[str, str]] = {  # a shape and a word each, so that colour is never needed
    "pass": ("M3.5 8.5l3 3l6 -7", "Pass"),
    "warn": ("M8 3.2v6M8 12v.6", "Warning"),
    "fail": ("M4 4l8 8M12 4l-8 8", "Fail"),
    "skip": ("M4 8h8", "Skipped"),
}


def picture(shown: Picture, kind: str = "") -> str:
    """A PNG as data, so that nothing is fetched; an SVG as a part of the page, whose colours it then follows."""
    if isinstance(shown.content, str):
        return f'<div class="drawing" role="img" aria-label="{escape(shown.alt)}">{shown.content}</div>'
    kinds = f' class="{kind}"' if kind else ""
    data = base64.b64encode(shown.content).decode()
    return f'<img{kinds} alt="{escape(shown.alt)}" src="data:image/png;base64,{data}">'


def figure(shown: Figure) -> str:
    return (
        f'<figure class="plate"><h3>{escape(shown.title)}</h3>'
        f"{scrolling(picture(shown.picture, 'paper'), shown.title)}"
        f"<figcaption>{escape(shown.caption)}</figcaption></figure>"
    )


def scrolling(content: str, name: str) -> str:
    """A box for what may be wider than a phone; it can be focused, so that a keyboard can scroll it."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}">{content}</div>'


def table(shown: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in shown.head)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in shown.rows
    )
    many = ' class="many"' if len(shown.head) > 4 else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    content = f"<table{many}><caption>{escape(shown.caption)}</caption>{body}</table>"
    return scrolling(content, shown.caption)


def curve(shown: Curve) -> str:
    """A chart with its legend and caption, and its numbers as a table to open."""
    legend = "".join(f"<li>{mark(place)}{escape(series.name)}</li>" for place, series in enumerate(shown.series))
    places = sorted({x for series in shown.series for x, _ in series.points})
    values = [dict(series.points) for series in shown.series]
    rows = tuple(
        (f"{x:g}", *(number(points[x], shown.percent) if x in points else "–" for points in values)) for x in places
    )
    numbers = table(Table(f"{shown.y} over {shown.x}", (shown.x, *(series.name for series in shown.series)), rows))
    return (
        f'<figure class="plot"><h3>{escape(shown.title)}</h3><p class="axis-name">{escape(shown.y)}</p>{chart(shown)}'
        f'<ul class="legend">{legend}</ul><figcaption>{escape(shown.caption)}</figcaption>'
        f"<details><summary>The numbers</summary>{numbers}</details></figure>"
    )


def facts(shown: tuple[Fact, ...]) -> str:
    items = "".join(
        f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}"
        f"{f'<small>{escape(fact.note)}</small>' if fact.note else ''}</dd></div>"
        for fact in shown
    )
    return f'<dl class="facts">{items}</dl>'


def badge(verdict: VerdictWord, word: str | None = None) -> str:
    """A verdict's sign, with its usual word or another."""
    shape, usual = VERDICTS[verdict]
    sign = f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{shape}"/></svg>'
    return f'<span class="badge {verdict}">{sign}{escape(word or usual)}</span>'


def notes(shown: tuple[str, ...]) -> str:
    return "".join(f'<p class="note">{escape(note)}</p>' for note in shown)


def paragraphs(*words: str) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in words)


def missing(command: str) -> str:
    """What stands where nothing has been made yet."""
    return f'<p class="missing">Nothing here yet. Run <code>{escape(command)}</code> and make the report again.</p>'
