"""Modules of a page as one classic script: a page opened from a file may not import modules."""

import re
from collections.abc import Mapping, Sequence

IMPORT = re.compile(r'^import (?:\{([^}]*)\} from )?"\./([\w.-]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const|let) ?\*? ?(\w+))", re.MULTILINE)
LISTED = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)
UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundled(modules: Mapping[str, str], entry: str, shown_as: str | None = None) -> str:
    """The module `entry` and all that it imports, each once and after those that it imports itself.

    Imports and exports are those of names, `import { a, b as c } from "./d.js";` and `export const e`. With `shown_as`
    all modules are in a variable of the window by that name.
    """
    parts: list[str] = []
    place(entry, modules, parts, [], set())
    shown = f"globalThis.{shown_as} = modules;\n" if shown_as else ""
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{"".join(parts)}{shown}}})();\n'


def place(name: str, modules: Mapping[str, str], parts: list[str], above: Sequence[str], placed: set[str]) -> None:
    if name in placed:
        return
    if name in above:
        raise ValueError(f"{' imports '.join([*above, name])}: modules of a page may not import each other in a round.")
    source = modules[name]
    for found in IMPORT.finditer(source):
        place(found[2], modules, parts, [*above, name], placed)
    placed.add(name)
    parts.append(wrapped(name, source))


def wrapped(name: str, source: str) -> str:
    """A module as a function of its own, which gives what the module exports."""
    exported = EXPORT.findall(source)
    for names in LISTED.findall(source):
        exported += [each.strip() for each in names.split(",") if each.strip()]
    body = LISTED.sub("", EXPORT.sub("", IMPORT.sub(taken, source)))
    if unknown := UNKNOWN.search(body):
        raise ValueError(f"{name} has a line that can't be put into one script: {unknown[0]}")
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(exported)} }};\n}})();\n'


def taken(found: re.Match[str]) -> str:
    """An import as a declaration."""
    if found[1] is None:
        return ""
    names = ", ".join(each.strip().replace(" as ", ": ") for each in found[1].split(",") if each.strip())
    return f'const {{ {names} }} = modules["{found[2]}"];\n'
