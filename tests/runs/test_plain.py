"""Plain values against dataclasses: what fits is read, and what does not is one sentence that says where."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from gammacaps.runs.typed_json import Misfit, read_as


@dataclass(frozen=True)
class Inner:
    size: int
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    name: str
    share: float | None
    pair: tuple[int, int]
    inner: tuple[Inner, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    under: bool = field(default=True, metadata={"name": "is under"})
    anything: Any = None


GOOD: dict[str, Any] = {"name": "x", "share": 0.5, "pair": [1, 2]}


def test_what_fits_is_read_with_its_kinds():
    values = {**GOOD, "inner": [{"size": 3}, {"size": 4, "kind": "b"}], "counts": {"c": 1}, "is under": False}
    read = read_as(Outer, values)
    assert read == Outer("x", 0.5, (1, 2), (Inner(3), Inner(4, "b")), {"c": 1}, False)
    assert read_as(Outer, {**GOOD, "share": 1}).share == 1.0  # a whole number is a number
    assert read_as(Outer, {**GOOD, "share": None}).share is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": 3}, "name must be a text, not 3"),
        ({"share": "half"}, "share must be a number, not 'half'"),
        ({"share": float("nan")}, "share must be a number"),
        ({"share": True}, "share must be a number, not True"),
        ({"share": 10**400}, "share must be a number"),
        ({"pair": [1]}, "pair must be a list of 2"),
        ({"pair": [1, 2.5]}, r"pair\[1\] must be a whole number"),
        ({"pair": [1, 10**30]}, r"pair\[1\] must be a whole number"),
        ({"pair": {"0": 1}}, "pair must be a list"),
        ({"inner": [{"size": 1, "kind": "c"}]}, r"inner\[0\].kind must be one of a, b, not 'c'"),
        ({"inner": [{}]}, r"inner\[0\].size is missing"),
        ({"inner": [[]]}, r"inner\[0\] must be a table"),
        ({"counts": {"c": None}}, "counts.c must be a whole number"),
        ({"counts": []}, "counts must be a table"),
        ({"is under": 0}, "is under must be true or false"),
        ({"under": True}, "under is not known"),
        ({"pairs": 1}, "pairs is not known"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(changes, words):
    with pytest.raises(Misfit, match=words):
        read_as(Outer, {**GOOD, **changes})


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_no_table_at_all(value):
    with pytest.raises(Misfit, match="all of it must be a table"):
        read_as(Outer, value)
