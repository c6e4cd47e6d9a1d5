"""The plain data that sections are made of: values, facts, pictures, curves, tables. Free of torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Value:
    """A figure that may stand in several places of a page, such as the accuracy on clean images.

    The page keeps its key beside it, so that it can be seen whether the same figure is the same everywhere.
    """

    key: str
    text: str


Words = str | Value
Sentence = tuple[Words, ...]


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
    dark: Picture | None = None  # the same on dark paper


@dataclass(frozen=True)
class Fact:
    """One figure or setting, such as "weights" and "347,152", with a note where its meaning is not plain."""

    name: str
    value: Words
    note: str = ""


@dataclass(frozen=True)
class Series:
    """A line of a chart: points (x, y), and for each the low and high end of its interval, where there are any."""

    name: str
    points: tuple[tuple[float, float], ...]
    intervals: tuple[tuple[float, float], ...] = ()
    like: int | None = None  # the place of the series whose colour and mark it has; without it its own
    dashed: bool = False  # as of figures that somebody else has measured


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
    height: int = 300  # of its drawing, which is 480 wide
    accuracies: bool = False  # whether its figures are accuracies over eps, which stand elsewhere, too


@dataclass(frozen=True)
class Table:
    """A table: the first column names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
