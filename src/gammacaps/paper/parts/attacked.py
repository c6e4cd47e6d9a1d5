"""Table 2 (PGD) and the table of FGSM: as in the paper SDA is trained under attack, and the others are not."""

from pathlib import Path

from gammacaps.paper.expected import EPS, expected
from gammacaps.paper.parts.cells import Found, heading, missing, percent, table
from gammacaps.paper.plan import PARTS
from gammacaps.paper.record import Record

TITLES = {"table2": ("pgd", "PGD: 40 steps of 0.01, a random start, on the margin"), "fgsm": ("fgsm", "FGSM")}


def pgd_section(found: Found, folder: Path) -> str:
    return _section("table2", found)


def fgsm_section(found: Found, folder: Path) -> str:
    return _section("fgsm", found)


def _section(part: str, found: Found) -> str:
    attack, title = TITLES[part]
    header = ["data", "routing", "steps", "seed", "trained"]
    header += [f"eps {eps:g}: {whose}" for eps in EPS for whose in ("paper", "ours")]
    rows = [_row(found[name], attack) for name in sorted(PARTS[part], key=_order) if name in found]
    words = f"{title}. Percent right of the test images, with the 95% interval."
    return "\n\n".join(text for text in (words, table(header, rows) if rows else "", missing(part, found)) if text)


def _order(name: str) -> tuple[int, int, str]:
    """By data set as in the paper, and in each RBA, EM, SDA."""
    data = next(place for place, data in enumerate(expected()[TITLES["table2"][0]]) if name.startswith(f"{data}-"))
    return data, next(place for place, rule in enumerate(("-rba-", "-em-", "-sda-")) if rule in name), name


def _row(record: Record, attack: str) -> list[str]:
    figures = record.figures
    told = expected()[attack][figures["data"]][figures["rule"]]
    ours = [percent(record.accuracy(attack, eps)) for eps in EPS]
    cells = [cell for n, mine in zip(told, ours, strict=True) for cell in (f"{n:.2f}", mine)]
    return [*heading(record), "under attack" if figures["train"]["robust"] else "clean", *cells]
