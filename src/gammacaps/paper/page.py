"""The page of the reproduction: what the paper says, what holds, pictures; all else is in the details beside it."""

from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.files import write_whole
from gammacaps.paper.answer import COMPARED, QUESTION, answer
from gammacaps.paper.claims import judge_claims
from gammacaps.paper.claims.claim import Claim, Verdict
from gammacaps.paper.details import ANCHORS, details
from gammacaps.paper.facts import read_facts
from gammacaps.paper.html_page import html_page
from gammacaps.paper.plan import DATA
from gammacaps.paper.plots import standing_alone
from gammacaps.paper.plotted import Plots, all_plots
from gammacaps.paper.readings import Records
from gammacaps.paper.record import read_records
from gammacaps.paper.sections.cells import table
from gammacaps.paper.words import (
    ABOUT,
    GLOSSARY,
    PAPER_SAYS,
    PICTURED,
    PICTURES,
    QUICK,
    RULES_APPLY,
    VERDICTS,
    counted,
    leaning,
    lengths,
    pictured,
)

DETAILS = "details.md"


def write_page(folder: Path, *, quick: bool = False) -> tuple[Path, ...]:
    """Writes the page, its details and its HTML, and the pictures; the same figures give the same bytes."""
    measured = read_records(folder)
    mixed = sorted(name for name, record in measured.items() if record.figures["quick"] != quick)
    if mixed:
        kind = "of the cut-down version" if not quick else "of the whole reproduction"
        raise InputError(f"{folder} holds figures {kind} ({mixed[0]}): give another folder with --results.")
    folder.mkdir(parents=True, exist_ok=True)
    judged, plots = judge_claims(measured), all_plots(measured)
    for name, plot in plots.items():
        write_whole(folder / f"{name}.svg", standing_alone(plot).encode())
    page_path, html_path = (folder.with_name(f"{folder.name}.{kind}") for kind in ("md", "html"))
    write_whole(folder / DETAILS, details(measured, folder, judged, read_facts(folder)).encode())
    write_whole(page_path, page(measured, folder, judged, plots, quick=quick).encode())
    write_whole(html_path, html_page(measured, folder, judged, plots, quick=quick).encode())
    return page_path, folder / DETAILS, html_path


def page(measured: Records, folder: Path, judged: dict[Claim, Verdict], plots: Plots, *, quick: bool = False) -> str:
    """The page as markdown; its pictures lie in the folder."""
    told, name = answer(measured), folder.name
    parts = ["# The paper, reproduced"]
    parts += [f"> **{QUICK}**"] if quick else []
    parts += [f"**{QUESTION}** {told.short}{f' {COMPARED}:' if told.rows else ''}"]
    parts += ["\n".join(f"- {line}" for line in told.lines())] if told.rows else []
    parts += [told.caveat, f"**What the paper says.** {PAPER_SAYS}", f"**What holds.** {counted(judged)}"]
    parts += [_images(name, plots, "pgd"), _one(name, plots, "structure"), _picture(folder, "features")]
    parts += [lengths(measured), "## The claims", RULES_APPLY, _claims(judged)]
    for title, part, names in PICTURES:
        shown = [_images(name, plots, each) if each in ("pgd", "fgsm") else _one(name, plots, each) for each in names]
        shown = [text for text in shown if text] or [
            text for each in names if each in PICTURED and (text := _picture(folder, each))
        ]
        link = f"[The figures]({name}/{DETAILS}#{ANCHORS[part]})"
        parts += [f"## {title}", *shown, link if shown else f"Not run yet. {link}"]
    parts += ["## Words", GLOSSARY, "## How it was made", ABOUT.format(folder=name, details=f"{name}/{DETAILS}")]
    return "\n\n".join(part for part in parts if part) + "\n"


def _images(folder: str, plots: Plots, attack: str) -> str:
    """Plots of the three data sets side by side, their files named under them."""
    names = [f"{attack}-{data}" for data in DATA if f"{attack}-{data}" in plots]
    shown = " ".join(f'<img src="{folder}/{name}.svg" width="32%" alt="{plots[name].title}">' for name in names)
    files = ", ".join(f"[{folder}/{name}.svg]({folder}/{name}.svg)" for name in names)
    return f"{shown}\n\n{files}" if names else ""


def _one(folder: str, plots: Plots, name: str) -> str:
    if name not in plots:
        return ""
    plot, path = plots[name], f"{folder}/{name}.svg"
    return f"![{plot.title}]({path})\n\n{plot.caption} [{path}]({path})".replace("\n\n ", "\n\n")


def _picture(folder: Path, name: str) -> str:
    """Pictures that the details have drawn, their files named under them."""
    shown = []
    for path, words in pictured(folder, name).items():
        place = f"{folder.name}/{path.name}"
        shown.append(f"![{words}]({place})\n\n{words}: [{place}]({place})")
    return "\n\n".join(shown)


def _claims(judged: dict[Claim, Verdict]) -> str:
    rows = [
        [f"**{claim.title}** {claim.rule}", *(_word(verdict, data) for data in DATA), ", ".join(verdict.why) or "-"]
        for claim, verdict in judged.items()
    ]
    return table(["claim, and its rule", *DATA.values(), "why it can't be told"], rows)


def _word(verdict: Verdict, data: str) -> str:
    if data not in verdict.says:
        return "-"
    return f"{VERDICTS[verdict.on[data]]}{leaning(verdict, data)}"
