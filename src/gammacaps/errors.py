"""The one error that a user of gammacaps is meant to read."""

import difflib
from collections.abc import Iterable

LEAST = 3  # letters of a name that a longer one can be taken for


class InputError(ValueError):
    """Something that was given can't be used.

    Its text is one sentence that says what is wrong, where, and what to do. The command line prints it
    without a traceback and exits with status 2.

    >>> import gammacaps
    >>> gammacaps.load_data("fashion-minni")
    Traceback (most recent call last):
    gammacaps.errors.InputError: There is no data set 'fashion-minni' (did you mean 'fashion-mini'?): use one of ...
    """


def check_name_is_free(what: str, name: str, ours: Iterable[str]) -> None:
    """Checks that what a user adds to a table is not called as an entry of ours, which no one may replace."""
    if name in ours:
        raise InputError(f"'{name}' is {what} of gammacaps itself: give yours another name.")


def check_choice(what: str, value: object, known: Iterable[str], *, also: str = "") -> None:
    """Checks that `value` is one of `known`; the error lists them and names the nearest spelling."""
    known = tuple(known)
    if value in known:
        return
    raise InputError(f"{no_such(what, value, known)}{also}.")


def no_such(what: str, value: object, known: Iterable[str]) -> str:
    """A sentence, without its end, about a value that is none of `known`: the nearest of them, and all."""
    known = tuple(known)
    guess = did_you_mean(value, known)
    return f"There is no {what} '{on_one_line(str(value))}'{guess}: use one of {', '.join(known)}"


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """The nearest spelling of a wrong name, as a question in brackets; nothing where none is near.

    A name that the wrong one only makes longer comes first: for epsilon it is eps, not precision.
    """
    wrong, known = str(value).lower(), tuple(known)
    shorter = [name for name in known if len(name) >= LEAST and wrong.startswith(name)]
    near = [max(shorter, key=len)] if shorter else difflib.get_close_matches(wrong, known, n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def on_one_line(text: str) -> str:
    """The text with line breaks and other signs that can't be seen written out."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
