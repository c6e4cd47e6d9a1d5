"""A check or an evaluation as HTML: a piece for a notebook, and a page that needs nothing else."""

from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gammacaps.data.group_names import listed
from gammacaps.evaluation.table import attack_name, shown, title, verdict_words
from gammacaps.names import VerdictWord
from gammacaps.radius import radius
from gammacaps.reporting.content import Fact
from gammacaps.reporting.markup import facts, paragraphs
from gammacaps.reporting.sections import checks as checks_section
from gammacaps.reporting.sections import scores as scores_section
from gammacaps.reporting.shares import percent

BAD = ("warn", "fail")
STYLES = ("page.css", "first.css")  # the report's
COLOURS: dict[VerdictWord, str] = {"pass": "#0072b2", "warn": "#a66a00", "fail": "#c43c00", "skip": "#666"}
ASKED = (
    "A network can look robust because the attacks on it were weak. Here it was attacked in several ways, an image "
    "counts as right in the worst case only if it stood under all of them, and each check looks for one way in which "
    "these figures could mislead."
)


def fragment(figures: dict[str, Any], heading: str) -> str:
    """A table of the accuracies, with what the checks say, for a notebook's cell."""
    rows = "".join(
        f'<tr><td style="text-align:left">{name}</td><td>{100 * row["accuracy"]:.1f}%</td>'
        f"<td>{100 * row['interval'][0]:.1f} to {100 * row['interval'][1]:.1f}</td></tr>"
        for name, row in _rows(figures)
        if row["accuracy"] is not None
    )
    head = '<th style="text-align:left">images</th><th>right</th><th>95% interval</th>'
    colour = COLOURS[figures.get("verdict", "skip")]
    bad = [check for check in figures.get("checks", ()) if check["verdict"] in BAD]
    items = "".join(f"<li><b>{escape(check['check'])}</b>: {escape(check['meaning'])}</li>" for check in bad)
    told = "".join(f"<li>{escape(note)}</li>" for note in (*figures["skipped"], *figures.get("notes", ())))
    return (
        f"<div><p>{escape(heading)}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<p style="color:{colour}"><b>{escape(verdict_words(figures))}</b></p><ul>{items}{told}</ul></div>'
    )


def page(figures: dict[str, Any], heading: str) -> str:
    """The whole page of a check."""
    score = scores_section.score
    rows = [score("Clean", 0.0, figures["clean"])]
    for row in shown(figures["attacks"]):
        if row["accuracy"] is not None:
            rows.append(score(attack_name(row), row["eps"], row))
    for row in figures["worst"]:
        if row["accuracy"] is not None:
            rows.append(score("Worst case of these", row["eps"], row, worst=True))
    told, asked = (*figures["skipped"], *figures["notes"]), ", ".join(figures["settings"]["attacks"])
    drawn = scores_section.draw_table(scores_section.Scores(tuple(rows), figures["clean"]["images"], told, asked))
    checked = checks_section.checks(figures)
    sections = [f"<section><h2>How often it is right</h2>{drawn}</section>"]
    if checked:
        sections.append(f"<section><h2>Whether to believe it</h2>{checks_section.draw(checked)}</section>")
    machine = figures["machine"]
    made = tuple(Fact(name, str(machine[name])) for name in ("gammacaps", "torch", "python", "device_name"))
    made += (Fact("seconds", f"{figures['seconds']:g}"), Fact("seed", str(figures["settings"]["seed"])))
    sections.append(f"<section><h2>How it was made</h2>{facts(made)}</section>")
    intro = f'<div class="says"><p class="lead">{escape(_found(figures))}</p>{paragraphs(heading, ASKED)}'
    intro += f"<p>{escape(verdict_words(figures))}</p></div>"
    return Template((files("gammacaps.face") / "check.html").read_text(encoding="utf-8")).substitute(
        title=escape(f"How robust is {figures['model']}?"),
        style="".join((files("gammacaps.reporting") / name).read_text(encoding="utf-8") for name in STYLES),
        intro=intro,
        sections="\n".join(sections),
    )


def _found(figures: dict[str, Any]) -> str:
    """The network first: how often it is right, and what of that is left under the strongest attack of each radius."""
    clean = f"Right on {percent(figures['clean']['accuracy'])} of {figures['clean']['images']:,} images as they are"
    worst = [row for row in figures["worst"] if row["accuracy"] is not None]
    left = [f"on {percent(row['accuracy'])} when each pixel may change by {radius(row['eps'])}" for row in worst]
    return f"{clean}{'; under attack ' if left else ''}{listed(left, len(left)) if left else ''}."


def _rows(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Names, ready for HTML, and figures: clean, each attack, the worst case of them."""
    attacks = [(escape(title(row)), row) for row in shown(figures["attacks"])]
    worst = [(f"<b>worst case</b> eps {radius(row['eps'])}", row) for row in figures["worst"]]
    return [("clean", figures["clean"]), *attacks, *worst]
