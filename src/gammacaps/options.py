"""Checks of the numbers that a user gives, one for each kind. Free of torch, so that help is instant."""

import math
import operator
from numbers import Real
from typing import Any

from gammacaps.errors import InputError

MOST = 2**31 - 1  # of anything that is counted
MOST_STEPS = 10_000  # that an option may ask of an attack, or of generating an image: more would seem endless
# In a call of the library more is let pass: a slip such as 1e30 should not end as an attack without end.
MOST_IN_CODE = 10**6
LARGEST_SEED = 2**63 - 1
FURTHEST = 1e4  # longer than the way from any image to any other, and still a number in half precision


def check_whole(name: str, value: Any, *, least: int = 1, most: int = MOST) -> None:
    """A whole number from `least` to `most`; None, where nothing was given, passes."""
    if value is None:
        return
    try:
        whole = operator.index(value)
    except TypeError:
        whole = None
    if whole is None or isinstance(value, bool):
        _refuse(name, "a whole number", value)
    elif whole < least:
        _refuse(name, "0 or more" if least == 0 else f"at least {least}", whole)
    elif whole > most:
        _refuse(name, f"at most {most:,}", whole)


def check_amount(name: str, value: Any, *, zero: bool = True, most: float = math.inf) -> None:
    """A finite number of 0 or more (without `zero`: more than 0), at most `most`; None passes."""
    if value is None:
        return
    number = _number(value)
    if not 0 <= number < math.inf or (number == 0 and not zero):
        _refuse(name, "0 or more" if zero else "more than 0", value)
    elif number > most:
        _refuse(name, f"at most {most:,}", value)


def check_seed(seed: Any) -> None:
    """A seed that all generators of random numbers take."""
    try:
        check_whole("seed", math.nan if seed is None else seed, least=0)
    except InputError:
        _refuse("seed", f"from 0 to {MOST}", seed)


def check_eps(*radii: Any, name: str = "eps", norm: str = "linf") -> None:
    """Radii of an attack: in L-inf within the range of a pixel."""
    for eps in radii:
        check_amount(name, eps, most=math.inf if norm == "linf" else FURTHEST)
        if eps is None or (norm == "linf" and eps > 1):
            _refuse(name, "at most 1, the range of a pixel", eps, None if eps is None else as_a_share(eps))


def as_a_share(eps: float) -> str:
    """The end of a sentence about a radius that counts the steps of a byte, as 8 for 8/255."""
    return f": if you mean {eps:g}/255, give {eps / 255:.4f}" if eps <= 255 else ""


def check_tau(*thresholds: Any) -> None:
    """Lengths above which a capsule is active."""
    for tau in thresholds:
        if not 0 <= _number(tau) < 1:
            _refuse("tau", "from 0 to below 1, as lengths are", tau)


def as_number(text: str) -> float:
    """What is written as a number or as a fraction such as 8/255; a ValueError for anything else."""
    above, slash, below = text.partition("/")
    try:
        return float(above) / float(below if slash else 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"could not convert string to float: {text!r}") from None


def part_of_work(share: str | None) -> tuple[int, int]:
    """Which of how many parts of some work `share` means, such as 2/5; without it all: (1, 1)."""
    if share is None:
        return 1, 1
    mine, _, parts = share.partition("/")
    if not (mine.isdecimal() and parts.isdecimal() and 1 <= int(mine) <= int(parts) <= 1000):
        raise InputError(f"share must be a part such as 2/5, the second of five, not {share!r}.")
    return int(mine), int(parts)


def _number(value: Any) -> float:
    """The value; NaN, which lies in no range, for what is no number."""
    if type(value) is bool or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _refuse(name: str, must: str, value: Any, hint: str | None = None) -> None:
    # Python refuses to write out a whole number of some thousand digits.
    huge = isinstance(value, int) and abs(value) >= 10**18
    given = "a number of more than 18 digits" if huge else f"{value!r:.60}"
    raise InputError(f"{name} must be {must}, not {given}{hint or ''}.")
