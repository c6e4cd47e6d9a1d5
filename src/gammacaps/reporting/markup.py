"""Pieces of the page: pictures, figures, tables, charts. Whatever comes from outside is escaped here."""

import base64
from html import escape

from gammacaps.names import VerdictWord
from gammacaps.reporting.chart import chart, mark, number
from gammacaps.reporting.content import Curve, Fact, Figure, Picture, Sentence, Table, Value, Words
from gammacaps.reporting.shares import accuracy, percent

VERDICTS: dict[VerdictWord, tuple[str, str]] = {  # a shape and a word each, so that colour is never needed
    "pass": ("M3.5 8.5l3 3l6 -7", "Pass"),
    "warn": ("M8 3.2v6M8 12v.6", "Warning"),
    "fail": ("M4 4l8 8M12 4l-8 8", "Fail"),
    "skip": ("M4 8h8", "Skipped"),
}


def words(shown: Words) -> str:
    """Plain words, or a figure that keeps its key."""
    if isinstance(shown, Value):
        return f'<span class="value" data-value="{escape(shown.key)}">{escape(shown.text)}</span>'
    return escape(shown)


def sentence(shown: Sentence) -> str:
    return "".join(words(each) for each in shown)


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
        f"{scrolling(both_papers(shown), shown.title)}"
        f"<figcaption>{escape(shown.caption)}</figcaption></figure>"
    )


def both_papers(shown: Figure) -> str:
    """The picture for a light page and the one for a dark page, of which the style sheet shows one."""
    if shown.dark is None:
        return picture(shown.picture, "paper")
    return picture(shown.picture, "paper on-light") + picture(shown.dark, "paper on-dark")


def scrolling(content: str, name: str) -> str:
    """A box for what may be wider than a phone: fitted to it, or scrolled once enlarged, by a keyboard too."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}">{content}</div>'


def table(shown: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in shown.head)
    rows = "".join(
        f'<tr><th scope="row">{words(row[0])}</th>{_cells(shown.head[1:], row[1:])}</tr>' for row in shown.rows
    )
    many = ' class="many"' if len(shown.head) > 4 else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    content = f"<table{many}><caption>{escape(shown.caption)}</caption>{body}</table>"
    return scrolling(content, shown.caption)


def _cells(head: tuple[str, ...], row: tuple[Words, ...]) -> str:
    """Each with its column's name, which a phone shows beside it."""
    return "".join(f'<td data-name="{escape(name)}">{words(cell)}</td>' for name, cell in zip(head, row, strict=True))


def curve(shown: Curve) -> str:
    """A chart with its legend and caption, and its numbers as a table to open."""
    legend = "".join(
        f"<li>{mark(place, series)}{escape(series.name)}</li>" for place, series in enumerate(shown.series)
    )
    places = sorted({x for series in shown.series for x, _ in series.points})
    values = [dict(series.points) for series in shown.series]
    names = tuple(series.name for series in shown.series)

    def cell(name: str, points: dict[float, float], x: float) -> Words:
        if x not in points:
            return "–"
        if shown.accuracies:
            return accuracy(name, x, points[x])
        return percent(points[x]) if shown.percent else number(points[x], percent=False)

    rows = tuple(
        (f"{x:g}", *(cell(name, points, x) for name, points in zip(names, values, strict=True))) for x in places
    )
    numbers = table(Table(f"{shown.y} over {shown.x}", (shown.x, *names), rows))
    title = f"<h3>{escape(shown.title)}</h3>" if shown.title else ""
    axis = f'<p class="axis-name">{escape(shown.y)}</p>' if shown.y else ""
    return (
        f'<figure class="plot">{title}{axis}{chart(shown)}'
        f'<ul class="legend">{legend}</ul><figcaption>{escape(shown.caption)}</figcaption>'
        f"<details><summary>The numbers</summary>{numbers}</details></figure>"
    )


def facts(shown: tuple[Fact, ...]) -> str:
    items = "".join(
        f"<div><dt>{escape(fact.name)}</dt><dd>{words(fact.value)}"
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
