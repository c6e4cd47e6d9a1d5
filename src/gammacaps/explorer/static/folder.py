"""`gammacaps explore NAME --static DIR`: the page as a folder that any web server, or a file manager, opens."""

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.explorer.networks import Network
from gammacaps.explorer.server import page_files
from gammacaps.explorer.static.bundling import bundled
from gammacaps.explorer.static.packing import packed_page
from gammacaps.files import new_folder

PAGE, SCRIPT, NETWORK = "index.html", "explorer.js", "network.js"
MARK = '<meta name="generator" content="gammacaps explore --static">'
FOOTER = (
    "<footer><p>Made by <code>gammacaps explore --static</code>: the network runs in this page. "
    "Nothing that you draw leaves it.</p></footer>"
)


def write_folder(networks: Sequence[Network], folder: Path) -> None:
    """Writes the page whole or not at all; a folder that holds anything but such a page is left alone."""
    check_ours(folder)
    data = packed_page(networks)
    page = {"worker": bundled(sources(), "worker.js"), "data": data}
    content = {
        PAGE: page_html(),
        SCRIPT: page_script(),
        NETWORK: f"globalThis.gammacapsPage = {json.dumps(page, separators=(',', ':'), allow_nan=False)};\n",
    }
    with new_folder(folder, check_old=check_ours) as new:
        for name, words in content.items():
            (new / name).write_text(words, encoding="utf-8")


def check_ours(folder: Path) -> None:
    """Refuses what exists already, unless it is empty or a page that was written before."""
    if not folder.exists():
        return
    if folder.is_dir():
        names = {path.name for path in folder.iterdir()}
        page = folder / PAGE
        if not names or (names <= {PAGE, SCRIPT, NETWORK} and page.is_file() and MARK.encode() in page.read_bytes()):
            return
    raise InputError(f"{folder} exists already and is no page of gammacaps explore: choose another folder.")


def page_html() -> str:
    """The server's page with its styles inside and classic scripts."""
    pages = page_files()
    html = pages["index.html"].decode()

    def style(found: re.Match[str]) -> str:
        return f'<style data-file="{found[1]}">\n{pages[found[1]].decode()}</style>'

    html = re.sub(r'<link rel="stylesheet" href="/page/([\w.-]+)">', style, html)
    scripts = f'<script defer src="{NETWORK}"></script>\n<script defer src="{SCRIPT}"></script>\n{MARK}'
    html = html.replace('<script type="module" src="/page/main.js"></script>', scripts)
    return re.sub(r"<footer>.*?</footer>", lambda _: FOOTER, html, flags=re.DOTALL)


def page_script() -> str:
    """The page's own code, which asks the worker in place of the server."""
    page = {name: content.decode() for name, content in page_files().items() if name.endswith(".js")}
    return bundled({**page, "transport.js": sources()["transport.js"]}, "main.js")


def sources() -> dict[str, str]:
    """What runs in the browser in place of the server, by the names of its modules."""
    folder: Traversable = files("gammacaps.explorer") / "static" / "browser"
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".js")}
