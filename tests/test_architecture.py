"""The order of the packages: a part knows those above it in docs/architecture.md and none below."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "architecture.md"


@functools.cache
def order() -> list[str]:
    """The parts as the page's table names them, first to last."""
    table = PAGE.read_text().partition("## The packages, in their order")[2].partition("\n## ")[0]
    return [
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(source: Path) -> dict[str, ast.Module]:
    return {module_name(path, source): ast.parse(path.read_text()) for path in sorted(source.rglob("*.py"))}


def imports(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules of ours that a module imports, at its head or inside a function; not what is for type checkers."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped.update(inner for part in node.body for inner in ast.walk(part))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write imports with their whole path"
            if node.module in known:
                whole = (f"{node.module}.{alias.name}" for alias in node.names)
                yield from (name if name in known else node.module for name in whole)


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def turned_round(source: Path) -> list[str]:
    """Imports that go against the order, each as a sentence."""
    trees = modules(source)
    rank = {name: place for place, name in enumerate(order())}
    wrong = []
    for module, tree in trees.items():
        for other in imports(tree, set(trees)):
            mine, theirs = part_of(module), part_of(other)
            if mine in ("", theirs):  # the root shows what its parts have
                continue
            if theirs == "" or rank[theirs] > rank[mine]:
                wrong.append(f"{module} imports {other}, which comes after it")
    return wrong


def cycles(source: Path) -> list[str]:
    """Modules that can be reached from themselves, imports inside functions counted."""
    trees = modules(source)
    graph = {module: set(imports(tree, set(trees))) - {module} for module, tree in trees.items()}
    rings = []
    for start in graph:
        reached, edge = set(), graph[start]
        while edge:
            reached |= edge
            edge = set().union(*(graph[module] for module in edge)) - reached
        if start in reached:
            rings.append(start)
    return rings


@pytest.mark.slow
def test_every_part_has_its_place_in_the_order():
    parts = {part_of(module) for module in modules(SOURCE)} - {""}
    assert parts == set(order())


@pytest.mark.slow
def test_no_part_knows_one_below_it():
    assert turned_round(SOURCE) == []


@pytest.mark.slow
def test_no_module_imports_itself_in_a_round():
    assert cycles(SOURCE) == []


@pytest.mark.parametrize("line", ["from gammacaps.training.loop import take_steps", "import gammacaps.training.loop"])
@pytest.mark.parametrize("place", ["{}", "def lazy():\n    {}"])
def test_an_import_that_is_turned_round_is_noticed(line, place, tmp_path):
    for path, text in {
        "gammacaps/__init__.py": "",
        "gammacaps/ops/__init__.py": place.format(line),
        "gammacaps/training/__init__.py": "",
        "gammacaps/training/loop.py": "import gammacaps.ops",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert turned_round(tmp_path) == ["gammacaps.ops imports gammacaps.training.loop, which comes after it"]
    assert cycles(tmp_path) == ["gammacaps.ops", "gammacaps.training.loop"]
