"""A real browser for tests of pages: the system's Chromium, driven by playwright.

Tests skip where there is none. With GAMMACAPS_BROWSER naming it, as where a build must not skip, they fail instead.
"""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# No sandbox, since builds run as root in a container; the rest keeps the browser itself from going to the network.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_browser() -> str | None:
    """The program's path; None where there is none."""
    named = os.environ.get("GAMMACAPS_BROWSER")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of one file."""
    required = "GAMMACAPS_BROWSER" in os.environ
    program = find_browser()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _leave("playwright is not installed: pip install playwright", required)
    if program is None:
        _leave("there is no Chromium: apt-get install chromium, or name one in GAMMACAPS_BROWSER", required)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield opened
        opened.close()


def _leave(reason: str, required: bool) -> None:
    if required:
        pytest.fail(f"GAMMACAPS_BROWSER is set, but {reason}.")
    pytest.skip(reason)


class Watch:
    """What a page asks for and complains about: requests that leave it, errors, warnings of the console."""

    def __init__(self, page: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def left(self) -> list[str]:
        """The requests for anything but the file itself and what it holds or makes."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "about:", "blob:"))]


def faults(page: Any) -> list[str]:
    """What axe-core finds wrong with a page for people who can't see well or use no mouse, if serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']} ({fault['impact']}): {node['html'][:160]} {node.get('failureSummary', '')}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
