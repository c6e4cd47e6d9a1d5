"""The plain data that sections are made of: facts, pictures, curves, tables. Free of torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A PNG or an SVG, and what it shows for whoever can't see it."""

    content: bytes | str  # the bytes of a PNG, or the text of an SVG
    alt: str


@dataclass(frozen=True)
class Figure:
    """A picture with its title, and a caption that says what to see in it."""

    title: str
    picture: Picture
    caption: str


@dataclass(frozen=True)
class Fact:
    """One figure or setting, such as "weights" and "347,152", with a note where its meaning is not plain."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Series:
    """A line of a chart: points (x, y), and for each the low and high end of its interval, where there are any."""

    name: str
    points: tuple[tuple[float, float], ...]
    intervals: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Curve:
    """A chart of one or more lines. `levels` are named heights, such as guessing; `marks` named places along x."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    caption: str
    percent: bool = True
    levels: tuple[tuple[str, float], ...] = ()
    marks: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Table:
    """A table: the first column names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
