"""The options of a verb in words, for `help(gammacaps.train)`, from the dataclass behind the command line's help."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

Verb = TypeVar("Verb", bound=Callable[..., Any])


def with_options(config: type[Any], *, but: tuple[str, ...] = ()) -> Callable[[Verb], Verb]:
    """Adds the options of a dataclass to a function's docstring, each with its default and what it is."""

    def add(verb: Verb) -> Verb:
        verb.__doc__ = f"{inspect.cleandoc(verb.__doc__ or '')}\n\n{options_text(config, but=but)}\n"
        return verb

    return add


def options_text(config: type[Any], *, but: tuple[str, ...] = ()) -> str:
    """A paragraph an option."""
    told = documented(config)
    lines = ["Options:"]
    for field in dataclasses.fields(config):
        if field.name not in but:
            words = f"{field.name}={field.default!r}: {told.get(field.name, '')}".rstrip(": ")
            lines += textwrap.wrap(words, 112, initial_indent="    ", subsequent_indent="        ")
    return "\n".join(lines)


def documented(config: type[Any]) -> dict[str, str]:
    """What stands in quotes under each field."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(config))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found
