"""What a check of robustness figures finds: a verdict, the number behind it, what it means."""

from dataclasses import dataclass

from gammacaps.names import VerdictWord


@dataclass(frozen=True)
class Finding:
    """Of the check of that name, in results.json as it is here."""

    check: str
    verdict: VerdictWord
    number: float | None
    meaning: str


def graded(number: float, warn: float, fail: float) -> VerdictWord:
    """A number that shall be small: "warn" and "fail" above these."""
    return "pass" if number <= warn else "warn" if number <= fail else "fail"


def missed(count: int, images: int) -> VerdictWord:
    """Of images that an attack missed: one image, or one in a hundred, is chance; one in twenty is not."""
    return graded(count, max(1, images / 100), max(1, images / 20))


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"
