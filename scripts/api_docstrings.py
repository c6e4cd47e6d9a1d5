"""For the API reference: what docstrings say to readers of Python's help, as the site's Markdown says it."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^[ ]*>>>.*\n?(?:^[ ]*\S.*\n?)*", re.MULTILINE)  # to the next empty line


class ApiDocstrings(Extension):
    """Goes through all of a package once it is loaded."""

    def on_package(self, *, pkg: Object, **_: Any) -> None:
        if pkg.docstring is not None:
            pkg.docstring.value = as_markdown(pkg.docstring.value)
        for member in pkg.members.values():
            if isinstance(member, Object):  # and not one that another module holds
                self.on_package(pkg=member)


def as_markdown(text: str) -> str:
    """Examples (>>>) in a block of code, where Markdown would see quotes; options where the site lists them."""

    def fenced(found: re.Match[str]) -> str:
        lines = found[0].rstrip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        return "\n".join(["```pycon", *(line[indent:] for line in lines), "```", ""])

    return EXAMPLE.sub(fenced, text).replace("listed below", "listed under [All options](../options.html)")
