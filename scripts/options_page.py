"""The page of all commands and their options, from the dataclasses behind `--help`."""

import dataclasses
from collections.abc import Iterator
from typing import Any, get_type_hints

import tyro

from gammacaps.cli.verbs import VERBS
from gammacaps.options_help import documented


def content() -> str:
    parts = ["# All options", "", "What `gammacaps VERB --help` says, on one page."]
    for verb, (kind, _) in VERBS.items():
        words = " ".join((kind.__doc__ or "").split())
        parts += ["", f"## gammacaps {verb}", "", words, "", "| option | default | |", "| --- | --- | --- |"]
        parts += [f"| `{name}` | {default} | {text} |" for name, default, text in rows(kind)]
    return "\n".join(parts) + "\n"


def rows(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Name, default and meaning of each option, those of a nested dataclass after the verb's own."""
    told, types = documented(kind), get_type_hints(kind, include_extras=True)
    nested = []
    for field in dataclasses.fields(kind):
        marks = getattr(types[field.name], "__metadata__", ())
        if tyro.conf.Suppress[int].__metadata__[0] in marks:  # type: ignore[attr-defined]
            continue
        if dataclasses.is_dataclass(field.type):
            nested.append(field.type)
            continue
        flag = field.name.replace("_", "-")
        if tyro.conf.Positional[int].__metadata__[0] in marks:  # type: ignore[attr-defined]
            name = flag.removesuffix("s").upper()
        elif isinstance(field.default, bool):
            name = f"--[no-]{flag}"
        else:
            name = f"--{flag}"
        yield name, _default(field), told.get(field.name, "").replace("|", r"\|")
    for inner in nested:
        assert isinstance(inner, type)
        yield from rows(inner)


def _default(field: "dataclasses.Field[Any]") -> str:
    value = field.default
    if value is dataclasses.MISSING or value is None or value == () or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{' '.join(map(str, value)) if isinstance(value, tuple) else value}`"
