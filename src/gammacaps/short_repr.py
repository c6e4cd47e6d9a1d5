"""Objects that hold tensors and long lists, told in one line."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

FEW = 4  # entries that are told one by one
LETTERS = 60


def short_repr(whole: Any) -> str:
    """What a dataclass is shown as: its fields, tensors by their shapes and what is long by its length."""
    fields = [(field.name, getattr(whole, field.name)) for field in dataclasses.fields(whole) if field.repr]
    return f"{type(whole).__name__}({', '.join(f'{name}={told(value)}' for name, value in fields)})"


def told(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, bool | int | None):
        return repr(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return repr(value) if len(value) <= LETTERS else f"{value[:LETTERS]!r}..."
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if hasattr(value, "shape"):
        return f"<{' x '.join(map(str, value.shape))}>"
    if isinstance(value, Mapping):
        return f"<{len(value)} entries>"
    if isinstance(value, Collection):
        entries = ", ".join(told(entry) for entry in value) if len(value) <= FEW else ""
        return f"({entries})" if 0 < len(entries) <= LETTERS else f"<{len(value)} entries>"
    return f"<{type(value).__name__}>"
