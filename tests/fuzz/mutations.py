"""Seeded damage to files, and the rule that every reader keeps: an answer or an `InputError`, and nothing else.

The variable GAMMACAPS_FUZZ is how many damaged files each reader gets, 200 unless told.
"""

import json
import os
import random
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from gammacaps.errors import InputError

COUNT = int(os.environ.get("GAMMACAPS_FUZZ", "200"))
SECONDS = 5.0  # of the processor for one file
MEMORY = 100 * 2**20  # bytes that one file may take, all of them being small

# Values in JSON's own words, some of which Python could not write.
ODD_VALUES = (
    *("null", "true", "false", "0", "-1", "1", "2.5", "-0.0", "1e30", "1e-400", "1e400", "-1e400", "NaN", "-Infinity"),
    *(
        "65536",
        "2147483648",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
        "9" * 400,
        "9" * 5000,
    ),
    *('""', '"x"', '"1"', '"nan"', '"../../../etc/passwd"', '"a\\u0000b"', '"\\ud800"', '"\\u001b[2J\\n"'),
    *(f'"{"long " * 400}"', "[]", "{}", "[null]", '{"a": 1}', "[[[[1]]]]", "[1, 2, 3]"),
    *("[" * 200 + "]" * 200, "[" * 100_000 + "]" * 100_000, '{"a":' * 990 + "1" + "}" * 990),
)

T = TypeVar("T")


def cases(reader: str, count: int = COUNT) -> Iterator[random.Random]:
    """A source of chance for each damaged file, the same in every run."""
    for number in range(count):
        yield random.Random(f"{reader} {number}")


def answer(read: Callable[[], T], *, seconds: float = SECONDS, memory: int | None = MEMORY) -> T | None:
    """What a reader gives, or None where it raises an InputError of one sentence; all else fails the test.

    It must not warn, nor take longer or more memory (of Python and numpy) than told; None leaves the memory unwatched,
    which is several times as fast.
    """
    found, sentence = None, "A sentence that nobody had to say."
    if memory is not None:
        tracemalloc.start()
    began = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                found = read()
            except InputError as error:
                sentence = str(error)
        took, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()  # 0 where it is not traced
    finally:
        tracemalloc.stop()
    assert 10 < len(sentence) < 5000, f"no sentence, or a long one: {sentence[:300]}"
    assert len(sentence.splitlines()) == 1, f"more than one line: {sentence}"
    assert not warned, f"it warns: {warned[0].message}"
    assert took < seconds, f"it takes {took:.1f} s"
    assert memory is None or peak < memory, f"it takes {peak / 2**20:.0f} MiB"
    return found


def both_ways(found: list[bool]) -> None:
    """Both ways out were taken: else the damage is too much or too little to show anything."""
    assert any(found)
    assert not all(found)


def of_bytes(content: bytes, chance: random.Random, *, among: int | None = None) -> bytes:
    """The content with one to three pieces of damage; `among` keeps most of them within its first bytes."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if not changed:
            break
        reach = min(among, len(changed)) if among and chance.random() < 0.8 else len(changed)
        chance.choice(BYTE_CHANGES)(changed, chance.randrange(reach), chance)
    return bytes(changed)


def _flip(content: bytearray, at: int, chance: random.Random) -> None:
    content[at] ^= 1 << chance.randrange(8)


def _overwrite(content: bytearray, at: int, chance: random.Random) -> None:
    size = chance.choice((1, 1, 2, 4, 8, 30))
    content[at : at + size] = chance.randbytes(min(size, len(content) - at))


def _extreme(content: bytearray, at: int, chance: random.Random) -> None:
    size = chance.choice((1, 2, 4, 8))
    content[at : at + size] = chance.choice((b"\xff", b"\x00", b"\x7f", b"\x80"))[:1] * min(size, len(content) - at)


def _truncate(content: bytearray, at: int, chance: random.Random) -> None:
    del content[at:]


def _duplicate(content: bytearray, at: int, chance: random.Random) -> None:
    piece = content[at : at + chance.randrange(1, 40)]
    content[at:at] = piece * chance.choice((1, 1, 2, 50))


def _insert(content: bytearray, at: int, chance: random.Random) -> None:
    content[at:at] = chance.choice((chance.randbytes(chance.randrange(1, 20)), b"\0" * 8, b"\n", b"'", b"\\", b"9" * 9))


def _delete(content: bytearray, at: int, chance: random.Random) -> None:
    del content[at : at + chance.randrange(1, 20)]


def _swap(content: bytearray, at: int, chance: random.Random) -> None:
    other, size = chance.randrange(len(content)), chance.randrange(1, 40)
    first, second = sorted((at, other))
    size = min(size, second - first)
    one, two = content[first : first + size], content[second : second + size]
    content[second : second + len(two)] = one[: len(two)]
    content[first : first + len(two)] = two


def _zero(content: bytearray, at: int, chance: random.Random) -> None:
    size = min(chance.choice((1, 4, 16, 200)), len(content) - at)
    content[at : at + size] = bytes(size)


BYTE_CHANGES = (_flip, _overwrite, _extreme, _truncate, _duplicate, _insert, _delete, _swap, _zero)


def of_json(value: Any, chance: random.Random) -> bytes:
    """A JSON text of the value, damaged in one to three places: in its nodes mostly, else in its bytes."""
    if chance.random() < 0.3:
        return of_bytes(json.dumps(value, indent=1).encode(), chance)
    root = [json.loads(json.dumps(value))]  # a copy, in a list so that all of it can be replaced too
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(root))
        chance.choice(NODE_CHANGES)(*chance.choice(places), chance)
        if not root:
            return b""
    return _written(root[0]).encode("utf-8", "surrogatepass")


class _Raw(str):
    """A value in JSON's own words."""

    __slots__ = ()


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with a key or an index in it, from the outside in."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    for key in keys:
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def _replace(inside: Any, key: Any, chance: random.Random) -> None:
    inside[key] = _Raw(chance.choice(ODD_VALUES))


def _nudge(inside: Any, key: Any, chance: random.Random) -> None:
    """A number becomes one near it or far off, a text another text: kinds stay, so that it gets further in."""
    old = inside[key]
    if isinstance(old, bool) or old is None or isinstance(old, dict | list):
        _replace(inside, key, chance)
    elif isinstance(old, int | float):
        inside[key] = chance.choice((old + 1, old - 1, -old, old * 1000, old / 3, old * 10**9, 10**18, int(old)))
    else:
        inside[key] = chance.choice((old + "x", old[:-1], old.upper(), old * 3, f" {old}", f"{old}\u202e"))


def _drop(inside: Any, key: Any, chance: random.Random) -> None:
    del inside[key]


def _rename(inside: Any, key: Any, chance: random.Random) -> None:
    if not isinstance(inside, dict):
        return _replace(inside, key, chance)
    new = chance.choice((f"{key}x", key[:-1], key.upper(), "", "__class__", chance.choice(list(inside))))
    inside[new] = inside.pop(key)
    return None


def _repeat(inside: Any, key: Any, chance: random.Random) -> None:
    if isinstance(inside, dict):
        inside[f"{key}2"] = inside[key]
    else:
        inside[key:key] = [inside[key]] * chance.choice((1, 2, 300))


def _shuffle(inside: Any, key: Any, chance: random.Random) -> None:
    """The value of another place of the same container."""
    inside[key] = inside[chance.choice(list(inside) if isinstance(inside, dict) else range(len(inside)))]


NODE_CHANGES = (_replace, _replace, _replace, _nudge, _nudge, _drop, _rename, _repeat, _shuffle)


def _written(value: Any) -> str:
    """As `json.dumps`, with what is raw as it is."""
    if isinstance(value, _Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return json.dumps(value)
