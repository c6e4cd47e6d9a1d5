"""What a report says, as plain data: filled in from a run, turned into a page by `render`. Free of torch.

Every part of a `Report` may be missing; its section then says which command makes it, or is left out.
"""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "warn", "fail", "skip"]  # skip: there was nothing to judge


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
class Score:
    """A share of test images that are answered rightly, and its 95% interval; eps is 0 for clean images."""

    name: str
    eps: float
    accuracy: float
    low: float
    high: float
    worst: bool = False  # the worst case of all attacks at this eps


@dataclass(frozen=True)
class Scores:
    """Clean first, then eps by eps."""

    rows: tuple[Score, ...]
    images: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One test of the figures themselves: its verdict, the number it rests on, and one sentence."""

    name: str
    verdict: Verdict
    number: str
    meaning: str


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
class Capsule:
    """A capsule with the input that was generated for it, how long it became, and the classes that input activates."""

    name: str
    generated: Picture
    length: float  # that the capsule reached, in [0, 1]
    serves: tuple[tuple[str, float], ...]  # classes and their scores by the generated input, largest first
    beside: Picture | None = None  # a training image of the class
    note: str = ""
    kind: str = ""  # what the audit calls it
    other: Picture | None = None  # the input that another network's capsule of this class was given


@dataclass(frozen=True)
class Layer:
    """The capsules of one hidden layer, and the name the network gives it; a note says which, where not all."""

    name: str
    capsules: tuple[Capsule, ...]
    note: str = ""


@dataclass(frozen=True)
class Tree:
    """The parse tree of one image, clean and, where it was attacked, attacked."""

    title: str
    clean: Picture
    clean_caption: str
    attacked: Picture | None = None
    attacked_caption: str = ""


@dataclass(frozen=True)
class Table:
    """A table: the first column names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Audit:
    """Whether the network is what the paper defines: one verdict and sentence, what it rests on, and curves."""

    verdict: Verdict
    sentence: str
    tau: float  # a capsule counts as active when it is longer
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A line for the shell and what it does."""

    line: str
    does: str


@dataclass(frozen=True)
class Report:
    """All that the page shows, in its order."""

    title: str
    run: str  # as it is named on the command line
    lead: str  # one plain paragraph: what the network is, on what and how it was trained
    headline: tuple[Fact, ...] = ()  # three or four figures to remember
    facts: tuple[Fact, ...] = ()
    scores: Scores | None = None
    checks: tuple[Check, ...] = ()
    curve: Curve | None = None
    class_capsules: tuple[Capsule, ...] = ()
    other: str = ""  # the name of the network that is shown beside
    hidden: tuple[Layer, ...] = ()
    trees: tuple[Tree, ...] = ()
    audit: Audit | None = None
    maps: tuple[Figure, ...] = ()
    commands: tuple[Command, ...] = ()
    versions: tuple[Fact, ...] = ()
    has_capsules: bool = True  # where there are none to show, the page leaves out what only capsules have
    tau: float = 0.1  # a capsule of a tree is active when it is longer
