"""Whether to believe the figures: the evaluation's checks, each with its verdict and what it means."""

from dataclasses import dataclass
from html import escape
from typing import Any

from gammacaps.names import VerdictWord
from gammacaps.reporting.markup import badge, paragraphs
from gammacaps.reporting.section import Section
from gammacaps.reporting.shares import percent
from gammacaps.reporting.study import Study

NAMES = {  # what the checks of an evaluation are called on the page
    "fgsm-beats-pgd": "One step against many",
    "noise-beats-gradient": "Noise against gradients",
    "black-box-beats-white-box": "From outside against from inside",
    "surrogate-beats-white-box": "Votes alone against all of the routing",
    "falls-with-eps": "Accuracy and the size of the attack",
    "steps-reach-eps": "Reach of the attack's steps",
    "inside-the-ball": "Size of the changes made",
    "longer-attacks": "Longer attacks",
    "attainable-at-0.5": "Everything made grey",
    "planted-examples": "Examples known to be wrong",
    "repeats": "The same image twice",
    "neighbours": "Other images beside it",
}
SHARES = {  # what the number of a check is the share of
    "learned": "of the clean images are right",
    "fgsm-beats-pgd": "of the images fall to one step and not to many",
    "noise-beats-gradient": "of the images fall to noise and not to gradients",
    "black-box-beats-white-box": "of the images fall to attacks from outside alone",
    "surrogate-beats-white-box": "of the images fall to the votes alone",
    "falls-with-eps": "of the images that fall stand at a larger eps",
    "longer-attacks": "of the images fall only to longer attacks",
    "attainable-at-0.5": "of the images are right at eps 0.5",
    "planted-examples": "of the planted examples are found",
}
SIZES = {  # words before any other number, and a unit
    "steps-reach-eps": ("The steps reach", " × eps"),
    "inside-the-ball": ("A change goes beyond eps by", ""),
    "repeats": ("A score differs the second time by", ""),
    "neighbours": ("A score changes with the images beside it by", ""),
}
GRADIENTS = "of the gradients are zero or no number"
ORDER = ("fail", "warn", "pass", "skip")  # what a reader must know first


@dataclass(frozen=True)
class ShownCheck:
    """One test of the figures themselves: its verdict, the number it rests on, what that is, and one sentence."""

    name: str
    verdict: VerdictWord
    before: str  # words before the number
    number: str
    after: str
    meaning: str


def collect(study: Study) -> tuple[ShownCheck, ...] | None:
    return checks(study.results or {}) or None


def checks(results: dict[str, Any]) -> tuple[ShownCheck, ...]:
    return tuple(
        ShownCheck(
            check_name(check["check"]), check["verdict"], *number(check["check"], check["number"]), check["meaning"]
        )
        for check in results.get("checks", ())
    )


def failed(results: dict[str, Any]) -> bool:
    """Whether a check found that the figures under attack can't be trusted."""
    return any(check.verdict == "fail" for check in checks(results))


def believed(results: dict[str, Any]) -> str:
    """In a few words what all checks together say of the figures under attack."""
    judged = [check for check in checks(results) if check.verdict != "skip"]
    bad = [check.name for check in judged if check.verdict == "fail"]
    careful = [check.name for check in judged if check.verdict == "warn"]
    if not judged:
        return "whether to believe it was not checked"
    of = f"of {len(judged)} checks"
    if bad:
        return f"{len(bad)} {of} {'fails' if len(bad) == 1 else 'fail'} ({', '.join(bad)}), so do not trust it"
    if careful:
        calls = "calls" if len(careful) == 1 else "call"
        return f"{len(careful)} {of} {calls} for care ({', '.join(careful)})"
    return f"none {of} found a reason to doubt it"


def check_name(name: str) -> str:
    if name.startswith("gradient-"):
        return f"Gradients of the loss {name.removeprefix('gradient-')}"
    return NAMES.get(name, name.replace("-", " ").capitalize())


def number(name: str, value: float | None) -> tuple[str, str, str]:
    """The number of the check of that name between words that say what it is; nothing where it has none."""
    if value is None:
        return "", "", ""
    share = GRADIENTS if name.startswith("gradient-") else SHARES.get(name)
    if share is not None:
        return "", percent(value), share
    before, unit = SIZES.get(name, ("", ""))
    return before, ("less than 0.0001" if 0 < abs(value) < 1e-4 else f"{value:.3g}") + unit, ""


def draw(shown: tuple[ShownCheck, ...]) -> str:
    judged = [check.verdict for check in shown if check.verdict != "skip"]
    said = f"{judged.count('pass')} of {len(judged)} checks pass"
    if "fail" in judged:
        said += (
            f", {judged.count('fail')} {'fails' if judged.count('fail') == 1 else 'fail'}: the figures under attack "
        )
        said += "can't be trusted."
    elif "warn" in judged:
        said += ", the others call for care in reading the figures under attack."
    else:
        said += ": there is no reason to doubt the figures under attack."
    intro = paragraphs(
        "A network looks robust, too, when the attack on it was weak: when its gradient is hidden, say, or the attack "
        "had too few steps. Each check looks for one such way to be fooled.",
    )
    items = "".join(draw_check(check) for check in sorted(shown, key=lambda check: ORDER.index(check.verdict)))
    return f'{intro}<p class="sum">{said}</p><ul class="checks">{items}</ul>'


def draw_check(check: ShownCheck) -> str:
    before, after = (f"<small>{escape(words)}</small>" if words else "" for words in (check.before, check.after))
    return (
        f"<li>{badge(check.verdict)}<div><h3>{escape(check.name)}</h3><p>{escape(check.meaning)}</p></div>"
        f'<p class="figure">{before} {escape(check.number)} {after}</p></li>'
    )


CHECKS = Section("checks", "Whether to believe it", collect, draw, needs=("results",), made_by="evaluate")
