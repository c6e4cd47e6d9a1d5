"""The tutorials: notebooks in docs/tutorials, run cell by cell, and as pages of the site.

python scripts/notebooks.py docs/tutorials/1-first-look.ipynb     # runs it in this folder and prints what it shows
"""

import ast
import base64
import contextlib
import io
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RICH = ("_repr_svg_", "_repr_html_")  # what objects show of themselves in a notebook, the first that they have


@dataclass
class Cell:
    """One cell: Markdown or code, and what running it showed, as HTML or as plain text."""

    kind: str
    source: str
    shown: list[tuple[str, str]] = field(default_factory=list)


def cells(path: Path) -> list[Cell]:
    notebook = json.loads(path.read_text())
    return [Cell(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def run(path: Path) -> list[Cell]:
    """Runs the cells of code in one namespace; a cell that ends in an expression shows its value, as in Jupyter."""
    found, names = cells(path), {"__name__": "__main__"}
    for number, cell in enumerate(found, 1):
        if cell.kind == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = _run_cell(cell.source, f"{path.name}, cell {number}", names)
            if printed.getvalue():
                cell.shown.append(("text", printed.getvalue()))
            if value is not None:
                cell.shown.append(_shown(value))
    return found


def _run_cell(source: str, place: str, names: dict[str, Any]) -> Any:
    lines = ast.parse(source, place).body
    last = lines.pop() if isinstance(lines[-1], ast.Expr) else None
    exec(compile(ast.Module(lines, []), place, "exec"), names)
    return eval(compile(ast.Expression(last.value), place, "eval"), names) if isinstance(last, ast.Expr) else None


def _shown(value: Any) -> tuple[str, str]:
    for name in RICH:
        if (show := getattr(value, name, None)) and (text := show()):
            return "html", text
    if hasattr(value, "_repr_png_") and (image := value._repr_png_()):
        return "html", f'<img alt="" src="data:image/png;base64,{base64.b64encode(image).decode()}">'
    return "text", repr(value)


def page(found: list[Cell]) -> str:
    """The notebook as Markdown, with what its cells showed if they were run."""
    parts = []
    for cell in found:
        parts.append(f"```python\n{cell.source}\n```" if cell.kind == "code" else cell.source)
        for kind, text in cell.shown:
            parts.append(f'<div class="shown">{text}</div>' if kind == "html" else f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    began = time.perf_counter()
    for ran in run(Path(sys.argv[1])):
        for _, said in ran.shown:
            print(said[:2000])
    print(f"{sys.argv[1]}: {time.perf_counter() - began:.1f} s")
