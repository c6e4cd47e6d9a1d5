"""The page of the reproduction as one HTML file in the report's design."""

from html import escape
from pathlib import Path

from gammacaps.paper.answer import COMPARED, QUESTION, answer
from gammacaps.paper.claims.claim import Claim, Verdict
from gammacaps.paper.plan import DATA
from gammacaps.paper.plots import DotPlot, dot_plot, legend_mark
from gammacaps.paper.plotted import Plots
from gammacaps.paper.readings import Records
from gammacaps.paper.words import (
    GLOSSARY,
    PAPER_SAYS,
    PICTURED,
    PICTURES,
    QUICK,
    RULES_APPLY,
    VERDICTS,
    counted,
    leaning,
    lengths,
    pictured,
)
from gammacaps.reporting.content import Curve, Picture, Table
from gammacaps.reporting.markup import badge, curve, paragraphs, picture, scrolling, table
from gammacaps.reporting.page import folded, one_file, opened

STYLE = """
/* The reproduction. */
.chart .head { fill: var(--ink); font-weight: 600; }
.reproduction { display: grid; gap: 0.5rem 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
.reproduction .plot { display: block; }
.reproduction figcaption { overflow-wrap: anywhere; }
.claims { list-style: none; margin: 0; padding: 0; display: grid; gap: 0 2.5rem; }
.claims li { border-top: 1px solid var(--line); padding: 0.7rem 0; }
.claims h3 { margin: 0 0 0.2rem; font-size: 1rem; }
.claims p { margin: 0 0 0.3rem; font-size: 0.9375rem; line-height: 1.45; }
.claims .on { display: flex; flex-wrap: wrap; gap: 0.2rem 1.5rem; font-family: var(--plain); }
.report .first section > p { max-width: 60rem; margin-bottom: 0.5rem; }
.report .folds p { max-width: 46rem; }
@media (min-width: 60.01rem) { .claims { grid-template-columns: 1fr 1fr; } }
"""
BADGES = {True: "pass", False: "fail", None: "skip"}


def html_page(
    measured: Records, folder: Path, judged: dict[Claim, Verdict], plots: Plots, *, quick: bool = False
) -> str:
    """All of it in one file; pictures are those that the details have drawn into the folder."""
    told = answer(measured)
    lines = [QUICK] if quick else []
    rows = "; ".join(told.lines())
    lines += [
        *([f"{COMPARED}: {rows}."] if rows else []),
        *([told.caveat] if told.caveat else []),
        f"What holds: {counted(judged)}",
    ]
    lead = f'<p class="lead"><strong>{QUESTION}</strong> {escape(told.short)}</p>'
    verdict = f'<div class="says">{lead}{paragraphs(*lines)}</div>'
    pgd = "".join(_plot(folder, name, plot) for name, plot in plots.items() if name.startswith("pgd-"))
    shown = [_plot(folder, "structure", plots["structure"])] if "structure" in plots else []
    shown += _pictures(folder, "features")
    first = [
        opened("says", "What the paper says", paragraphs(PAPER_SAYS, lengths(measured).replace("**", ""))),
        opened("pgd", "Accuracy under PGD: the paper's beside ours", f'<div class="reproduction">{pgd}</div>')
        if pgd
        else "",
        opened("inside", "T and D, and generated inputs", f'<div class="reproduction">{"".join(shown)}</div>')
        if shown
        else "",
    ]
    below = [folded("claims", f"The {len(judged)} claims", paragraphs(RULES_APPLY.replace("*", "")) + _claims(judged))]
    for title, part, names in PICTURES:
        bodies = [
            *(_plot(folder, name, plot) for name, plot in plots.items() if name.split("-")[0] in names),
            *(made for name in names for made in (_pictures(folder, name) if name in PICTURED else ())),
        ]
        if bodies:
            below.append(folded(part, title, f'<div class="reproduction">{"".join(bodies)}</div>'))
    below.append(folded("words", "Words", _glossary()))
    return one_file("The paper, reproduced", verdict, "\n".join(first), "\n".join(below), verb="reproduce", style=STYLE)


def _plot(folder: Path, name: str, plot: DotPlot | Curve) -> str:
    """A plot with its legend, the name of its file, and its figures to open."""
    path = f"{folder.name}/{name}.svg"
    if isinstance(plot, Curve):
        return curve(Curve(plot.title, plot.x, plot.y, plot.series, path, plot.percent, height=plot.height))
    legend = "".join(f"<li>{legend_mark(plot, place)}{escape(series)}</li>" for place, series in enumerate(plot.series))
    return (
        f'<figure class="plot"><h3>{escape(plot.title)}</h3>{dot_plot(plot)}<ul class="legend">{legend}</ul>'
        f"<figcaption>{escape(f'{plot.caption} {path}'.strip())}</figcaption>"
        f"<details><summary>The numbers</summary>{table(_numbers(plot))}</details></figure>"
    )


def _numbers(plot: DotPlot) -> Table:
    def cell(place: int, dots: tuple[float, ...]) -> str:
        return " and ".join(f"{100 * x:.1f}%" if plot.percent else f"{x:.2f}" for x in dots) or "–"

    rows = tuple(
        (
            f"{panel.title}: {row.name}",
            *(cell(k, tuple(dot.value for dot in row.dots if dot.series == k)) for k in range(len(plot.series))),
        )
        for panel in plot.panels
        for row in panel.rows
    )
    return Table(plot.title, ("", *plot.series), rows)


def _pictures(folder: Path, name: str) -> list[str]:
    """Pictures that the details have drawn, their files named under them."""
    return [
        f'<figure class="plate">{scrolling(picture(Picture(path.read_bytes(), words), "paper"), words)}'
        f"<figcaption>{escape(f'{words}. {folder.name}/{path.name}')}</figcaption></figure>"
        for path, words in pictured(folder, name).items()
    ]


def _claims(judged: dict[Claim, Verdict]) -> str:
    items = []
    for claim, verdict in judged.items():
        on = "".join(
            f"<span>{DATA[data]}: {escape(VERDICTS[held] + leaning(verdict, data))}</span>"
            for data, held in verdict.on.items()
        )
        why = f"<p>Why it can't be told: {escape(', '.join(verdict.why))}.</p>" if verdict.why else ""
        sign = badge(BADGES[verdict.held], VERDICTS[verdict.held])  # type: ignore[arg-type]  # three of the four words
        items.append(
            f"<li><h3>{escape(claim.title)}</h3>{sign}<p>{escape(claim.said)}.</p><p>{escape(claim.rule)}</p>"
            f'<p class="on">{on}</p>{why}</li>'
        )
    return f'<ul class="claims">{"".join(items)}</ul>'


def _glossary() -> str:
    lines = GLOSSARY.replace("\n  ", " ").replace("**", "").splitlines()
    return "<ul>" + "".join(f"<li>{escape(line.removeprefix('- '))}</li>" for line in lines) + "</ul>"
