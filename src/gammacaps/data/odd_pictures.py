"""What is made of pictures that are not simply 8-bit grey or RGB: said once for each kind, with one file's name."""

import contextlib
import warnings
from collections.abc import Iterable

from PIL import Image

ALPHA_MODES = frozenset({"LA", "La", "PA", "RGBA", "RGBa"})
DEEP_MODES = frozenset({"I;16", "I;16L", "I;16B", "I;16N"})  # grey of 16 bits, from 0 to 65,535
KINDS = {
    "frames": "with several frames or pages, of which the first is read",
    "deep": "of 16 bits, read as 8 bits with 65,535 as white",
    "print": "in the colours of print (CMYK), turned to RGB",
    "alpha": "stored with transparency, which is dropped",
}


def oddities(image: Image.Image) -> frozenset[str]:
    """Which of `KINDS` an opened picture is."""
    found = {
        "frames": _several_frames(image),
        "deep": image.mode in DEEP_MODES,
        "print": image.mode == "CMYK",
        "alpha": image.mode in ALPHA_MODES or (image.mode == "P" and "transparency" in image.info),
    }
    return frozenset(kind for kind, is_so in found.items() if is_so)


def _several_frames(image: Image.Image) -> bool:
    with warnings.catch_warnings(), contextlib.suppress(Exception):  # what follows the first may be damaged
        warnings.simplefilter("ignore")
        return bool(getattr(image, "is_animated", False))
    return False


def odd_notes(pictures: Iterable[tuple[str, frozenset[str]]]) -> tuple[str, ...]:
    """A sentence for each kind of odd pictures among these, given by name with what is odd about them."""
    named: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for where, odd in pictures:
        for kind in odd:
            named[kind].append(where)
    return tuple(
        f"{counted(len(names), 'picture')} {KINDS[kind]}: {first_few(names)}." for kind, names in named.items() if names
    )


def counted(count: int, what: str) -> str:
    """How many there are, with the verb: 1 picture is, 2 pictures are."""
    return f"1 {what} is" if count == 1 else f"{count:,} {what}s are"


def first_few(names: list[str]) -> str:
    """The first five by name."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
