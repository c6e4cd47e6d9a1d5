"""What else the network withstands, from beyond.json: other norms, turns, bad pictures, unseen things."""

from dataclasses import dataclass
from typing import Any

from gammacaps.beyond.table import main_rows, told
from gammacaps.evaluation.interval import with_interval
from gammacaps.progress import say
from gammacaps.reporting.accuracies import earlier
from gammacaps.reporting.content import Curve, Series, Table
from gammacaps.reporting.markup import curve, notes, paragraphs, table
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Study
from gammacaps.runs.run import BEYOND, Run


@dataclass(frozen=True)
class ShownBeyond:
    """Tables of accuracies and of unseen things, the curve over the angle and that of sureness."""

    images: int
    tables: tuple[Table, ...]
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]


def collect(study: Study) -> ShownBeyond | None:
    figures = Run(study.run).beyond()
    if figures is None:
        return None
    if tuple(figures["class_names"]) != tuple(study.test.class_names) or figures["data"]["name"] != study.test.name:
        path, own = study.run / BEYOND, figures["data"]["name"]
        say(f"{path} is left out: its figures are of {own}, and the report is about {study.test.name}.")
        return None
    return shown_beyond(figures, earlier(study, figures))


def shown_beyond(figures: dict[str, Any], first: tuple[str, ...] = ()) -> ShownBeyond:
    """`first` are notes to stand before the figures' own."""
    measured = [(name, row) for name, row in main_rows(figures) if row["accuracy"] is not None]
    rows = [(capital(name), with_interval(row)) for name, row in measured]
    mean = figures["corruptions"]["mean"]
    if mean is not None:
        rows.append(("Bad pictures, mean of all kinds", f"{100 * mean:.1f}"))
    bad = tuple((capital(row["kind"]), with_interval(row)) for row in figures["corruptions"]["kinds"])
    unseen = tuple((capital(row["source"]), *told(row)) for row in figures["unseen"])
    tables = [Table("Right answers, in %, and their 95% interval", ("Images", "Right"), tuple(rows))]
    if bad:
        tables.append(Table("Bad pictures: right answers, in %, by kind", ("Kind", "Right"), bad))
    if unseen:
        head = ("Source", "By length", "Attacked", "By pattern", "Attacked")
        tables.append(Table("Unseen things: AUROC, and false alarms where 95% of test images pass", head, unseen))
    return ShownBeyond(figures["data"]["images"], tuple(tables), curves(figures), (*first, *figures["notes"]))


def curves(figures: dict[str, Any]) -> tuple[Curve, ...]:
    """Accuracy over the angle, and over the share of images that are answered."""
    shown = []
    if figures["turned"]:
        sides = tuple(
            Series(f"to the {side}", tuple((row["angle"], row[side]["accuracy"]) for row in figures["turned"]))
            for side in ("right", "left")
        )
        words = "All test images turned by the same angle; nothing searches for the worst one here."
        shown.append(Curve("Turned images", "degrees", "test images answered rightly", sides, words))
    answered = tuple((one["share"], one["accuracy"]) for one in figures["calibration"]["answered"])
    words = (
        "The images of which it is surest, by its longest class capsule. Its calibration error, the mean gap between "
        f"how sure it is and how often it is right, is {figures['calibration']['error']:.3f}."
    )
    axes = ("share of the images that it answers", "of these answered rightly")
    return (*shown, Curve("Leaving out what it doubts", *axes, (Series("right", answered),), words))


def draw(shown: ShownBeyond) -> str:
    intro = paragraphs(
        "Robustness is usually measured for small changes of each pixel. Here is what else was tried, on "
        f"{shown.images:,} test images: changes that are small in other norms, the worst of many turns, shifts and "
        "scalings, and the fifteen kinds of bad pictures of MNIST-C.",
        "Unseen things are noise, blank images and other data sets. AUROC says how often a test image gets the higher "
        "number of two, one of each: 1 is always, 0.5 is chance. The number is the length of the longest class "
        "capsule, or how well the pattern of active hidden capsules fits a known one; attacked means that the unseen "
        "image was changed within eps to make a class capsule long.",
    )
    return intro + "".join(map(table, shown.tables)) + "".join(map(curve, shown.curves)) + notes(shown.notes)


def capital(name: str) -> str:
    return name[:1].upper() + name[1:]


BEYOND_SECTION = Section("beyond", "What else it withstands", collect, draw)
