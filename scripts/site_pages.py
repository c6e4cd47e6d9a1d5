"""A hook of MkDocs: pages that are made from other files of the repository, and links to those files.

| page | from |
| --- | --- |
| index, contributing, security, changelog | the files at the root |
| tutorials/* | notebooks, run only where GAMMACAPS_RUN_TUTORIALS=1 asks for their output |
| options | the options of every command |
| api/* | the docstrings of the public packages |
| networks/* | the cards of the networks that come with the package |

Links in Markdown are written for the repository. Where one leads to a file that is elsewhere on the site, it is
changed; a file outside docs/ that a page links to comes along.
"""

import ast
import contextlib
import os
import posixpath
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import networks_page
import notebooks
import options_page

ROOT = Path(__file__).parents[1]
AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
CARDS = "src/gammacaps/models/weights"
PARTS = ("attacks", "corruptions", "data", "explain", "metrics", "models", "nn", "ops", "reporting")
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
homes: dict[str, str] = {}  # a file of the repository -> its page or file on the site


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    homes.clear()
    homes.update({f"docs/{file.src_uri}": file.src_uri for file in files})

    def add(page: str, content: str, origin: str) -> None:
        homes[origin] = page
        files.append(File.generated(config, page, content=content))

    for origin, page in AT_ROOT.items():
        add(page, (ROOT / origin).read_text(), origin)
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        add(f"tutorials/{path.stem}.md", notebooks.page(_tutorial(path)), f"docs/tutorials/{path.name}")
    homes["docs/tutorials"] = "tutorials/1-first-look.md"
    add("options.md", options_page.content(), "options")
    parts = ", ".join(f"[{part}]({part}.md)" for part in PARTS)
    add("api/gammacaps.md", f"# gammacaps\n\nParts with a page of their own: {parts}.\n\n::: gammacaps\n", "api")
    for part in PARTS:
        add(f"api/{part}.md", _reference(part), f"src/gammacaps/{part}")
    cards = sorted((ROOT / CARDS).glob("*/README.md"))
    for card in cards:
        add(f"networks/{card.parent.name}.md", card.read_text(), str(card.relative_to(ROOT)))
    add("networks/index.md", networks_page.content([card.parent for card in cards]), CARDS)
    for origin, page in [*homes.items()]:
        if page.endswith(".md") and (ROOT / origin).is_file():
            for link in LINK.finditer((ROOT / origin).read_text()):
                _bring(link[2], origin, files, config)
    return files


def _tutorial(path: Path) -> list[notebooks.Cell]:
    """A notebook's cells, with what they show where that is asked for; what they write is thrown away."""
    if not os.environ.get("GAMMACAPS_RUN_TUTORIALS"):
        return notebooks.cells(path)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return notebooks.run(path)


def _reference(part: str) -> str:
    """The page of a package: all that it exports. A name that a module of it has too is asked for by its whole path."""
    folder = ROOT / "src" / "gammacaps" / part
    tree = ast.parse((folder / "__init__.py").read_text())
    exported = next(
        line for line in tree.body if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__"
    )
    text = f"# gammacaps.{part}\n\n::: gammacaps.{part}\n"
    for name in ast.literal_eval(exported.value):
        if (folder / f"{name}.py").exists() or (folder / name).is_dir():
            text += f"\n::: gammacaps.{part}.{name}.{name}\n"
            text += "    options: {show_root_heading: true, show_root_toc_entry: true}\n"
    return text


def _bring(link: str, origin: str, files: Files, config: MkDocsConfig) -> None:
    """Adds what a page links to and the site does not have yet: a file as it is, a folder as the list of its files."""
    target = _target(link, origin)
    if target is None or target in homes:
        return
    if (ROOT / target).is_dir():
        inside = [path.name for path in sorted((ROOT / target).iterdir()) if path.is_file() and path.suffix != ".npz"]
        content = "\n".join([f"# Files in {target}", "", *(f"- [{name}]({name})" for name in inside)])
        homes[target] = f"{target.removeprefix('docs/')}/index.md"
        files.append(File.generated(config, homes[target], content=content))
    else:
        homes[target] = f"files/{target}"
        files.append(File.generated(config, homes[target], content=(ROOT / target).read_bytes()))


def _target(link: str, origin: str) -> str | None:
    """The file of the repository that a link leads to; None for what is not one."""
    if "://" in link:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    return path if (ROOT / path).exists() else None


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    here = page.file.src_uri
    origin = next((origin for origin, home in homes.items() if home == here), None)
    if origin is None or not (ROOT / origin).is_file():
        return markdown

    def changed(link: re.Match[str]) -> str:
        home = homes.get(_target(link[2], origin) or "")
        return link[0] if home is None else f"{link[1]}{posixpath.relpath(home, posixpath.dirname(here))}{link[3]}"

    # Markdown here wants four spaces before a list inside a list, where GitHub takes two.
    text = re.sub(r"^  - ", "    - ", LINK.sub(changed, markdown), flags=re.MULTILINE)
    if origin.endswith(".ipynb"):
        name = posixpath.basename(origin)
        text += (
            f"\n---\n\nThis page is a notebook, [{name}]({name}). To run it: `pip install jupyterlab`, `jupyter lab`.\n"
        )
    return text
