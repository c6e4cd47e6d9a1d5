"""How often the network is right, on clean images and under each attack: a table."""

from dataclasses import dataclass
from html import escape
from typing import Any

from gammacaps.radius import radius
from gammacaps.reporting.accuracies import attack_name, attacks_asked, earlier, under_attack, worst_name
from gammacaps.reporting.markup import notes, paragraphs, scrolling, words
from gammacaps.reporting.section import Section
from gammacaps.reporting.shares import CLEAN, accuracy, interval
from gammacaps.reporting.study import Study


@dataclass(frozen=True)
class Score:
    """A share of test images that are answered rightly, and its 95% interval; eps is 0 for clean images."""

    attack: str
    eps: float
    accuracy: float
    low: float
    high: float
    worst: bool = False  # the worst case of the attacks at this eps

    @property
    def name(self) -> str:
        return f"{self.attack}, eps {radius(self.eps)}" if self.eps else self.attack


@dataclass(frozen=True)
class Scores:
    """Clean first, then eps by eps."""

    rows: tuple[Score, ...]
    images: int
    notes: tuple[str, ...] = ()
    attacks: str = ""  # what was asked for, as in "standard"


def collect(study: Study) -> Scores | None:
    return None if study.results is None else scores(study, study.results)


def scores(study: Study, results: dict[str, Any]) -> Scores:
    """Clean first, then radius by radius, the worst case last in each."""
    attacks, worst = under_attack(results)
    rows, of = [score(CLEAN, 0.0, results["clean"])], worst_name(results)
    for eps in sorted({row["eps"] for row in (*attacks, *worst)}):
        rows += [score(attack_name(row), eps, row) for row in attacks if row["eps"] == eps]
        rows += [score(of, eps, row, worst=True) for row in worst if row["eps"] == eps]
    told = (*earlier(study, results), *results.get("skipped", ()))
    return Scores(tuple(rows), results["clean"]["images"], told, attacks_asked(results))


def score(attack: str, eps: float, row: dict[str, Any], *, worst: bool = False) -> Score:
    low, high = row["interval"]
    return Score(attack, eps, row["accuracy"], low, high, worst)


def draw(shown: Scores) -> str:
    intro = paragraphs(
        f"The share of {shown.images:,} test images, none of them seen in training, that are given their right "
        "class: left as they are, and changed by an attack. An image counts as right under attack only if it was "
        "right before, too.",
        "The 95% interval says how far a figure may be off because only so many images were tried. The worst case "
        "counts the images that stand under every attack: it is the figure to go by.",
    )
    return intro + draw_table(shown)


def draw_table(shown: Scores) -> str:
    """The table with its notes."""
    rows = "".join(draw_row(row) for row in shown.rows)
    head = '<th scope="col">Images</th><th scope="col">Right</th><th scope="col">95% interval</th>'
    caption = f"Accuracy on {shown.images:,} test images" + (f"; attacks: {shown.attacks}" if shown.attacks else "")
    content = (
        f'<table class="scores"><caption>{escape(caption)}</caption><thead><tr>{head}'
        f'<th scope="col" class="bar">0 to 100%</th></tr></thead><tbody>{rows}</tbody></table>'
    )
    return scrolling(content, "Accuracy on test images") + notes(shown.notes)


def draw_row(row: Score) -> str:
    low, high, middle = (200 * value for value in (row.low, row.high, row.accuracy))
    kind = ' class="worst"' if row.worst else ""
    line = f'<path class="range" d="M{low:.1f} 8H{max(high, low + 0.1):.1f}"/>'
    dot = f'<circle cx="{middle:.1f}" cy="8" r="4.2"/>'
    bar = f'<svg viewBox="-4 0 208 16" aria-hidden="true"><path class="track" d="M0 8H200"/>{line}{dot}</svg>'
    return (
        f'<tr{kind}><th scope="row">{escape(row.name)}</th><td class="figure">'
        f"{words(accuracy(row.attack, row.eps, row.accuracy))}</td>"
        f'<td>{interval(row.low, row.high)}</td><td class="bar">{bar}</td></tr>'
    )


SCORES = Section("scores", "How often it is right", collect, draw, made_by="evaluate")
