"""Commands as they are typed."""

import shlex
from typing import Any


def options(values: dict[str, Any], defaults: dict[str, Any]) -> str:
    """The options of a command that differ from its defaults, as they are written."""
    line = ""
    for name, value in values.items():
        given = tuple(value) if isinstance(value, list) else value
        if name not in defaults or given == defaults[name]:
            continue
        flag = "--" + name.replace("_", "-")
        if isinstance(given, bool):
            line += f" {flag}" if given else f" --no-{flag[2:]}"
        else:
            words = given if isinstance(given, tuple) else (given,)
            line += f" {flag} " + " ".join(shlex.quote(str(w)) for w in words)
    return line
