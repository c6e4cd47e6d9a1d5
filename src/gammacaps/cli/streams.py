"""Standard streams that are closed, full or no longer read."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from gammacaps.errors import InputError


def open_streams() -> None:
    """Opens standard streams that were closed, or the next files opened would take their place and all that is printed.

    What no encoding can say, such as parts of a file's name, is printed as an escape instead of not at all.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free, which is this one
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, nowhere())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def show(words: str) -> None:
    """Prints what a verb has to say."""
    with printed():
        print(words)


@contextlib.contextmanager
def printed() -> Iterator[None]:
    """Brings what is printed to its reader; one who has seen enough, such as `head`, does not end the work."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        lead_nowhere(sys.stdout)
    except OSError as error:
        lead_nowhere(sys.stdout)
        raise InputError(f"The output can't be written ({error.strerror}): send it to another place.") from None


def lead_nowhere(stream: TextIO) -> None:
    """What was not written yet, and all that comes, is dropped; else Python would complain about it once more."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def nowhere() -> TextIO:
    """A file that keeps nothing."""
    return Path(os.devnull).open("w")


def flush_all() -> None:
    """At the end, when nobody can be told any more what could not be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            lead_nowhere(stream)
