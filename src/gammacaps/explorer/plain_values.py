"""Plain values of a question, read from JSON: what is none of the kind is refused in one sentence."""

from collections.abc import Sequence
from typing import Any

from gammacaps.errors import InputError, check_choice

MOST_WORDS = 40  # characters of a value that an error repeats


def known(body: Any, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InputError("A question is a JSON object, such as {...}.")
    for name in body:
        choice("field", name, names)
    return body


def choice(what: str, value: Any, names: Sequence[str]) -> None:
    """As `check_choice`, with an error that is short and can be sent: JSON may hold one half of a surrogate pair."""
    if value not in names:
        words = value.encode(errors="backslashreplace").decode() if isinstance(value, str) else shortened(value)
        check_choice(what, cut(words), names)


def whole(name: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise InputError(f"{name} must be a whole number from {low} to {high}, not {shortened(value)}.")
    return value


def number(name: str, value: Any, low: float, high: float) -> float:
    if type(value) not in (int, float) or not low <= value <= high:  # nor is NaN
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, not {shortened(value)}.")
    return float(value)


def truth(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise InputError(f"{name} must be true or false, not {shortened(value)}.")
    return value


def shortened(value: Any) -> str:
    """A value in the words of an error; lists and objects, which may be deep, by their kind alone."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return cut(repr(value))


def cut(words: str) -> str:
    return words if len(words) <= MOST_WORDS else words[: MOST_WORDS - 1] + "…"
