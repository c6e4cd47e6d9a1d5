"""Plots of the reproduction as SVG: rows of dots with intervals, and files that stand alone, light and dark."""

from dataclasses import dataclass
from html import escape

from gammacaps.reporting.chart import MARKS, WIDTH, Scale, chart, mark, ticks
from gammacaps.reporting.content import Curve

LEFT, RIGHT = 178, 462  # the plotting area; before it stand the rows' names
ROW, HEAD, TOP, BELOW = 24, 30, 4, 46
LEGEND_ROW = 22


@dataclass(frozen=True)
class Dot:
    """A figure of a row: which series it is of, and its interval where it has one."""

    series: int
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    name: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Panel:
    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class DotPlot:
    """Rows of dots on one axis from 0 to 1; a series of the paper's is hollow, in the colour of ours that follows."""

    title: str
    x: str
    series: tuple[str, ...]
    panels: tuple[Panel, ...]
    caption: str
    papers: tuple[int, ...] = ()  # the series that are the paper's, each followed by ours
    percent: bool = True

    def look(self, series: int) -> tuple[int, str]:
        """The colour and mark of a series, by place, and its dots' classes."""
        place = series - sum(paper < series for paper in self.papers)
        return place % len(MARKS), "dot hollow" if series in self.papers else "dot"

    @property
    def height(self) -> int:
        return TOP + sum(HEAD + ROW * len(panel.rows) for panel in self.panels) + BELOW


def dot_plot(plot: DotPlot) -> str:
    """The plot as an <svg> element, in the classes of the report's style sheet."""
    bottom = plot.height - BELOW

    def x(value: float) -> float:
        return LEFT + (RIGHT - LEFT) * min(max(value, 0.0), 1.0)

    parts = []
    for tick in ticks(0, 1):
        parts.append(f'<path class="grid" d="M{x(tick):.1f} {TOP + HEAD - 6}V{bottom}"/>')
        words = f"{100 * tick:.0f}%" if plot.percent else f"{tick:g}"
        parts.append(f'<text class="tick" x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{words}</text>')
    middle = (LEFT + RIGHT) / 2
    parts.append(f'<text class="name" x="{middle}" y="{bottom + 38}" text-anchor="middle">{escape(plot.x)}</text>')
    y = float(TOP)
    for panel in plot.panels:
        parts.append(f'<text class="head" x="0" y="{y + 20:.0f}">{escape(panel.title)}</text>')
        y += HEAD
        for row in panel.rows:
            parts.append(
                f'<text class="name" x="{LEFT - 12}" y="{y + 13:.0f}" text-anchor="end">{escape(row.name)}</text>'
            )
            parts += [_dot(dot, y + 9, x, *plot.look(dot.series)) for dot in row.dots]
            y += ROW
    label = escape(f"{plot.title}. The figures are in the table below.")
    box = f"0 0 {WIDTH} {plot.height}"
    return f'<svg class="chart" viewBox="{box}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _dot(dot: Dot, y: float, x: Scale, place: int, kind: str) -> str:
    bar = ""
    if dot.low is not None and dot.high is not None:
        bar = f'<path class="line" d="M{x(dot.low):.1f} {y:.1f}H{x(dot.high):.1f}"/>'
    shape = f'<path class="{kind}" transform="translate({x(dot.value):.1f} {y:.1f})" d="{MARKS[place]}"/>'
    return f'<g class="s{place}">{bar}{shape}</g>'


def legend_mark(plot: DotPlot, series: int) -> str:
    """A series' mark alone."""
    place, kind = plot.look(series)
    shape = f'<path class="{kind}" d="{MARKS[place]}"/>'
    return f'<svg class="mark s{place}" viewBox="-14 -7 28 14" aria-hidden="true">{shape}</svg>'


STYLE = """
svg { --page: #fdfdfb; --line: #dedcd5; --ink: #1d1f22; --soft: #565b62;
  --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #b07a00; --s4: #8a5a83; font: 13px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --page: #15171a; --line: #33383e; --ink: #e8e7e3; --soft: #a9afb7;
  --s0: #56b4e9; --s1: #ff8c42; --s2: #3ccda0; --s3: #e6b422; --s4: #d99fce; } }
.back { fill: var(--page); } text { fill: var(--soft); } .title, .head { fill: var(--ink); font-weight: 600; }
.grid, .axis { stroke: var(--line); } .level { stroke: var(--soft); stroke-dasharray: 3 4; }
.line { fill: none; stroke: currentColor; stroke-width: 2; } .band { fill: currentColor; opacity: 0.13; }
.dot { fill: currentColor; stroke: var(--page); } .dashed .line { stroke-dasharray: 6 4; }
.dashed .dot, .hollow { fill: var(--page); stroke: currentColor; stroke-width: 2; }
.s0 { color: var(--s0); } .s1 { color: var(--s1); } .s2 { color: var(--s2); } .s3 { color: var(--s3); }
.s4 { color: var(--s4); }
"""


def standing_alone(plot: DotPlot | Curve) -> str:
    """The plot as a file of its own, with its title, its legend and colours for light and dark."""
    if isinstance(plot, DotPlot):
        drawn, names = dot_plot(plot), plot.series
        marks = [legend_mark(plot, place) for place in range(len(names))]
    else:
        drawn, names = chart(plot), tuple(series.name for series in plot.series)
        marks = [mark(place, series) for place, series in enumerate(plot.series)]
    above, height = 34, plot.height
    inner = drawn.replace('class="chart"', f'x="10" y="{above}" width="{WIDTH}" height="{height}"', 1)
    legend = []
    for place, (name, shape) in enumerate(zip(names, marks, strict=True)):
        y = above + height + 14 + LEGEND_ROW * place
        legend.append(shape.replace("<svg ", f'<svg x="26" y="{y - 7}" width="28" height="14" ', 1))
        legend.append(f'<text x="64" y="{y + 5}">{escape(name)}</text>')
    whole = above + height + 10 + LEGEND_ROW * len(names)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 20} {whole}" width="{WIDTH + 20}" '
        f'height="{whole}" role="img" aria-label="{escape(plot.title)}"><style>{STYLE}</style>'
        f'<rect class="back" width="100%" height="100%"/><text class="title" x="10" y="22">{escape(plot.title)}</text>'
        f"{inner}{''.join(legend)}</svg>\n"
    )
