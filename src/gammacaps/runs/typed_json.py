"""Plain values, as JSON has them, checked against a dataclass: what a file holds is of its kind, or one sentence."""

import dataclasses
import functools
import math
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "nothing"}
LARGEST = 2**63  # of whole numbers: none that a file counts comes near


class Misfit(ValueError):
    """A value is not of its kind; the text says where it stands, what it must be and what it is."""


def read_as(kind: type[T], value: Any, where: str = "") -> T:
    """The dataclass that the values describe, each of them and those inside of them checked.

    A field with a default may be absent; a name that is no field is a misfit, and so is a number that is not finite.
    """
    return _read(kind, value, where)


def _read(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(inner, value, where)
    if origin is Literal:
        if any(value == choice and type(value) is type(choice) for choice in inner):
            return value
        raise _misfit(where, f"one of {', '.join(map(str, inner))}", value)
    if origin is tuple:
        return _listed(inner, value, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise _misfit(where, "a table", value)
        return {name: _read(inner[1], item, f"{where}.{ascii(name)[1:-1]:.40}") for name, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _fields(kind, value, where)
    return _single(kind, value, where)


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    for kind in rest[:-1]:
        try:
            return _read(kind, value, where)
        except Misfit:
            continue
    return _read(rest[-1], value, where)


def _listed(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _misfit(where, "a list", value)
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(value)
    if len(value) != len(kinds):
        raise _misfit(where, f"a list of {len(kinds)}", value)
    return tuple(_read(kind, item, f"{where}[{i}]") for i, (kind, item) in enumerate(zip(kinds, value, strict=True)))


def _fields(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _misfit(where, "a table", value)
    hints = _hints(kind)
    fields = {field.metadata.get("name", field.name): field for field in dataclasses.fields(kind)}
    unknown = [name for name in value if name not in fields]
    if unknown:
        raise Misfit(f"{where}.{ascii(unknown[0])[1:-1]:.40} is not known".lstrip("."))
    given = {}
    for name, field in fields.items():
        if name in value:
            given[field.name] = _read(hints[field.name], value[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Misfit(f"{where}.{name} is missing".lstrip("."))
    return kind(**given)


@functools.lru_cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _single(kind: Any, value: Any, where: str) -> Any:
    if kind is float and type(value) in (int, float):
        if abs(value) < LARGEST if type(value) is int else math.isfinite(value):
            return float(value)
    elif type(value) is kind and (kind is not int or abs(value) < LARGEST):
        return value
    raise _misfit(where, NAMES[kind], value)


def _misfit(where: str, must: str, value: Any) -> Misfit:
    return Misfit(f"{where.lstrip('.') or 'all of it'} must be {must}, not {value!r:.60}")
