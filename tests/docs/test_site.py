"""The documentation as a site: built without a warning, it needs nothing from outside, and its links lead somewhere."""

import functools
import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import Watch

import gammacaps

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PARTS = ["attacks", "corruptions", "data", "explain", "metrics", "models", "nn", "ops", "reporting"]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site that `make docs` has just built, where make runs the tests; else one that is built here."""
    if made := os.environ.get("GAMMACAPS_SITE"):
        return ROOT / made
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


class Page(HTMLParser):
    """The names that links can lead to, the links, and what the page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if "src" in given:
            self.loads.append(given["src"])
        elif "href" in given:
            (self.links if tag == "a" else self.loads).append(given["href"])


@functools.cache
def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_link_and_anchor_leads_somewhere(site):
    assert len(pages(site)) > 40
    astray = []
    for path in pages(site):
        for link in (*read(path).links, *read(path).loads):
            parts = urlsplit(link)
            if parts.scheme or path.name == "404.html":  # whose links are from the top of a server
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            named = target.suffix != ".html" or not parts.fragment or unquote(parts.fragment) in read(target).names
            if not target.exists() or not named:
                astray.append(f"{path.relative_to(site)}: {link}")
    assert astray == []


def test_pages_load_nothing_from_outside(site):
    for path in pages(site):
        outside = [load for load in read(path).loads if urlsplit(load).scheme not in ("", "data")]
        assert outside == [], path
    for path in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text()), path


@pytest.mark.parametrize("part", ["", *PARTS])
def test_every_public_name_is_in_the_reference(site, part):
    module = importlib.import_module(f"gammacaps.{part}".rstrip("."))
    names = read(site / "api" / f"{part or 'gammacaps'}.html").names
    for name in module.__all__:
        if name not in PARTS or part:
            assert names & {f"{module.__name__}.{name}", f"{module.__name__}.{name}.{name}"}, name


def test_every_public_part_has_a_page():
    parts = [name for name in gammacaps.__all__ if isinstance(getattr(gammacaps, name), type(sys))]
    assert set(parts) <= set(PARTS)


def test_every_page_is_in_the_menu(site):
    menu = {unquote(urlsplit(link).path) for link in read(site / "index.html").links}
    for path in (ROOT / "docs").glob("*.md"):
        assert f"{path.stem}.html" in menu, f"put {path.name} into nav of mkdocs.yml"


def test_every_command_s_options_are_on_one_page(site):
    from gammacaps.cli.verbs import VERBS

    text = (site / "options.html").read_text()
    for verb in VERBS:
        assert f'id="gammacaps-{verb.replace(" ", "-")}"' in text
    assert "--attack-steps" in text
    assert "--[no-]robust" in text


def test_the_home_page_fits_every_screen_and_asks_nobody(site, browser):
    for width in (1280, 390):
        for name in ("index.html", "tutorials/2-is-it-robust.html", "api/attacks.html", "faq.html"):
            page = browser.new_page(viewport={"width": width, "height": 800})
            watch = Watch(page)
            page.goto((site / name).as_uri())
            page.wait_for_selector("h1")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert watch.left() == []
            assert watch.complaints == []
            page.close()
