"""The curve of the first screen: the worst case of all attacks over eps, with its interval."""

from dataclasses import replace

from gammacaps.reporting.content import Curve
from gammacaps.reporting.markup import curve as curve_figure
from gammacaps.reporting.section import Section
from gammacaps.reporting.sections.strength import curve
from gammacaps.reporting.study import Study

LOW = 235  # its height, so that the first screen has room for capsules
MOST = 2  # lines: the worst case, and PGD at many radii where it was measured so


def collect(study: Study) -> Curve | None:
    whole = None if study.results is None else curve(study, study.results)
    if whole is None:
        return None
    worst, *others = whole.series
    denser = [one for one in others if len(one.points) > len(worst.points)]
    return replace(whole, title="", series=(worst, *denser[: MOST - 1]), caption="", y="", height=LOW)


def draw(shown: Curve) -> str:
    return curve_figure(shown)


def draw_beside(several: list[tuple[str, Curve]]) -> str:
    """The first line of each network in one chart; a mark stands where any of them was trained."""
    series = tuple(replace(shown.series[0], name=f"{name} ({shown.series[0].name})") for name, shown in several)
    first = several[0][1]
    marks = tuple(dict.fromkeys(mark for _, shown in several for mark in shown.marks))
    return curve_figure(replace(first, series=series, marks=marks, accuracies=False))


WORST_CURVE = Section(
    "curve", "Right answers as the attack grows", collect, draw, needs=("results",), first=True, beside=draw_beside
)
