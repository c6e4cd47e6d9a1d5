"""How this very program is started in the shell that it runs in, for commands that it prints."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

NAME = "gammacaps"


def program() -> str:
    """`gammacaps` where the shell knows it; else the script beside this Python, or `python -m gammacaps`."""
    if shutil.which(NAME):
        return NAME
    script = Path(sys.executable).with_name(NAME)
    if script.is_file():
        return shlex.quote(_near(script))
    return f"{shlex.quote(_near(Path(sys.executable)))} -m {NAME}"


def command(words: str) -> str:
    """A command of gammacaps as it can be typed here."""
    return f"{program()} {words}"


def as_typed(sentence: str, verbs: Iterable[str]) -> str:
    """A sentence that names commands of gammacaps, with each as it can be typed here."""
    first = {verb.split()[0] for verb in verbs}
    typed = program()
    return re.sub(rf"(?<![\w./-]){NAME} (?=(?:{'|'.join(sorted(first))})\b|--help)", lambda _: f"{typed} ", sentence)


def _near(path: Path) -> str:
    """From the working directory where it lies below it, as .venv/bin/gammacaps."""
    try:
        return os.fspath(path.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return os.fspath(path)
