"""A check or an evaluation as HTML: a piece for a notebook, and a page that needs nothing else."""

from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gammacaps.evaluation.interval import radius
from gammacaps.evaluation.table import shown, title, verdict_words
from gammacaps.names import VerdictWord
from gammacaps.reporting.content import Fact
from gammacaps.reporting.markup import badge, facts, paragraphs
from gammacaps.reporting.sections import checks as checks_section
from gammacaps.reporting.sections import scores as scores_section

BAD = ("warn", "fail")
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
            rows.append(score(title(row), row["eps"], row))
    for row in figures["worst"]:
        if row["accuracy"] is not None:
            rows.append(score(f"Worst case of these, eps {radius(row['eps'])}", row["eps"], row, worst=True))
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
    verdict: VerdictWord = figures.get("verdict", "skip")
    intro = f"{paragraphs(heading, ASKED)}<p>{badge(verdict)} {escape(verdict_words(figures))}</p>"
    return Template((files("gammacaps.face") / "check.html").read_text(encoding="utf-8")).substitute(
        title=escape(f"How robust is {figures['model']}?"),
        style=(files("gammacaps.reporting") / "page.css").read_text(encoding="utf-8"),
        intro=intro,
        sections="\n".join(sections),
    )


def _rows(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Names, ready for HTML, and figures: clean, each attack, the worst case of them."""
    attacks = [(escape(title(row)), row) for row in shown(figures["attacks"])]
    worst = [(f"<b>worst case</b> eps {radius(row['eps'])}", row) for row in figures["worst"]]
    return [("clean", figures["clean"]), *attacks, *worst]
