"""Line charts as SVG that takes its colours from the page, so that they follow light and dark."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from gammacaps.reporting.content import Curve, Series

Scale = Callable[[float], float]  # from a value to its place in the picture

WIDTH = 480
LETTER, TALL = 6.8, 15  # the room of a letter of a name
BESIDE, DOT, STEP, PARTS = 6, 6, 2, 8  # from a line to its name; around a mark; of the search for a free place
LEFT, RIGHT, TOP, BELOW = 52, 460, 14, 50  # the plotting area, and the room below it

# Each line has its own mark beside its own colour, so that colour is never needed to tell them apart.
MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.7 -3.7h7.4v7.4h-7.4z",
    "M0 -4.8l4.6 8h-9.2z",
    "M0 -5l5 5l-5 5l-5 -5z",
    "M-4.5 -1.3h3.2v-3.2h2.6v3.2h3.2v2.6h-3.2v3.2h-2.6v-3.2h-3.2z",
)


def chart(curve: Curve) -> str:
    """The chart as an <svg> element; lines have the classes s0, s1, ... of the page's style sheet."""
    right, low, high = _limits(curve)
    ticks_x, ticks_y = ticks(0, right), ticks(low, high)
    bottom = curve.height - BELOW

    def x(value: float) -> float:
        return LEFT + (RIGHT - LEFT) * value / right

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * (value - low) / (high - low)

    parts = []
    for tick in ticks_y:
        parts.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{RIGHT}"/>')
        parts.append(_text(LEFT - 8, y(tick) + 4.5, number(tick, curve.percent), "end"))
    for tick in ticks_x:
        parts.append(_text(x(tick), bottom + 20, f"{tick:g}", "middle"))
    parts.append(_text((LEFT + RIGHT) / 2, curve.height - 5, curve.x, "middle", "name"))
    for name, value in curve.levels:
        parts.append(f'<path class="level" d="M{LEFT} {y(value):.1f}H{RIGHT}"/>')
        parts.append(_text(LEFT + 6, y(value) - 6, name, "start", "name"))
    taken = _taken(curve, x, y)
    for name, value in curve.marks:
        parts.append(f'<path class="level" d="M{x(value):.1f} {TOP}V{bottom}"/>')
        free = _free_box(x(value), LETTER * len(name), bottom, taken)
        taken.append(free)
        left_of = free.right < x(value)
        parts.append(
            _text(free.right if left_of else free.left, free.below - 3, name, "end" if left_of else "start", "name")
        )
    for place, series in enumerate(curve.series):
        parts.append(_line(series, place, x, y))
    parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{RIGHT}"/>')
    label = escape(f"{curve.title or 'A curve'}: {curve.y} over {curve.x}. The numbers are in the table below.")
    box = f"0 0 {WIDTH} {curve.height}"
    return f'<svg class="chart" viewBox="{box}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def mark(place: int, series: Series | None = None) -> str:
    """A line's mark alone, for the legend."""
    place, dashed = _look(place, series)
    return (
        f'<svg class="mark s{place}{dashed}" viewBox="-14 -7 28 14" aria-hidden="true">'
        f'<path class="line" d="M-14 0H14"/><path class="dot" d="{MARKS[place]}"/></svg>'
    )


def _look(place: int, series: Series | None) -> tuple[int, str]:
    """The colour and mark of a line, by its place or another's, and the class of those that are dashed."""
    own = place if series is None or series.like is None else series.like
    return own % len(MARKS), " dashed" if series is not None and series.dashed else ""


def ticks(low: float, high: float) -> list[float]:
    """Round numbers in [low, high], four to seven of them, a 1, 2 or 5 of some decimal place apart."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float, percent: bool) -> str:
    return f"{100 * value:.3g}%" if percent else f"{value:.3g}"


def _limits(curve: Curve) -> tuple[float, float, float]:
    """The largest x, and the lowest and highest y: whole shares from 0 to 100%, other figures from 0 or below."""
    xs = [x for series in curve.series for x, _ in series.points] + [value for _, value in curve.marks]
    right = max(xs, default=0.0) or 1.0
    if curve.percent:
        return right, 0.0, 1.0
    ys = [y for series in curve.series for _, y in series.points] + [value for _, value in curve.levels]
    ys += [end for series in curve.series for interval in series.intervals for end in interval]
    low, high = min(0.0, *ys), max(0.0, *ys)
    return right, low, high if high > low else low + 1.0


@dataclass(frozen=True)
class Box:
    """A part of the picture, in its own units, which grow to the right and downward."""

    left: float
    right: float
    above: float
    below: float

    def meets(self, other: "Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.above < other.below and other.above < self.below


def _taken(curve: Curve, x: Scale, y: Scale) -> list[Box]:
    """Where no words can stand: on the lines with their marks and intervals, and on names and lines of levels."""
    boxes = [Box(x(a) - DOT, x(a) + DOT, y(b) - DOT, y(b) + DOT) for line in curve.series for a, b in line.points]
    for series in curve.series:
        # Of the interval the low end too: words on a band are hard to read.
        spans = series.intervals or tuple((b, b) for _, b in series.points)
        ends = [
            (x(a), y(max(b, high)), y(min(b, low))) for (a, b), (low, high) in zip(series.points, spans, strict=True)
        ]
        for (left, above, below), (right, next_above, next_below) in itertools.pairwise(ends):
            for part in range(PARTS):
                near, far = (left + (right - left) * (part + k) / PARTS for k in (0, 1))
                aboves, belows = (
                    [start + (end - start) * (part + k) / PARTS for k in (0, 1)]
                    for start, end in ((above, next_above), (below, next_below))
                )
                boxes.append(Box(near, far, min(aboves) - 2, max(belows) + 2))
    for name, value in curve.levels:
        boxes.append(Box(LEFT, RIGHT, y(value) - 1, y(value) + 1))
        boxes.append(Box(LEFT + 6, LEFT + 6 + LETTER * len(name), y(value) - 17, y(value)))
    boxes += [Box(x(value) - 1, x(value) + 1, TOP, curve.height) for _, value in curve.marks]
    return boxes


def _free_box(at: float, wide: float, bottom: float, taken: list[Box]) -> Box:
    """Where the name of an upright line can stand: beside it, as high as nothing is in its way, else at the top."""
    sides = [(at + BESIDE, at + BESIDE + wide), (at - BESIDE - wide, at - BESIDE)]
    inside = [(left, right) for left, right in sides if left >= LEFT and right <= RIGHT]
    boxes = [
        Box(left, right, float(above), above + TALL)
        for above in range(TOP, int(bottom - TALL), STEP)
        for left, right in inside or sides[1:]
    ]
    return next((box for box in boxes if not any(box.meets(other) for other in taken)), boxes[0])


def _line(series: Series, place: int, x: Scale, y: Scale) -> str:
    """The interval as a band, the line, and a mark at each point that names itself."""
    parts = []
    if series.intervals:
        edge = [(point[0], high) for point, (_, high) in zip(series.points, series.intervals, strict=True)]
        back = [(point[0], low) for point, (low, _) in zip(series.points, series.intervals, strict=True)]
        corners = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in [*edge, *reversed(back)])
        parts.append(f'<polygon class="band" points="{corners}"/>')
    path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in series.points)
    if path:
        parts.append(f'<path class="line" d="M{path}"/>')
    look, dashed = _look(place, series)
    shape = MARKS[look]
    for a, b in series.points:
        parts.append(f'<path class="dot" transform="translate({x(a):.1f} {y(b):.1f})" d="{shape}"/>')
    return f'<g class="s{look}{dashed}">{"".join(parts)}</g>'


def _text(x: float, y: float, words: str, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
