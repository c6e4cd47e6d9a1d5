"""Shares of test images as a page writes them, the same wherever they stand. Free of torch."""

from gammacaps.reporting.content import Value

CLEAN = "Clean"


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def interval(low: float, high: float) -> str:
    return f"{100 * low:.1f} to {100 * high:.1f}"


def accuracy(name: str, eps: float, share: float) -> Value:
    """The share of right answers, known by what was done to the images: CLEAN, the worst case or an attack's name."""
    return Value(f"accuracy {name if eps else CLEAN} {eps:g}", percent(share))
