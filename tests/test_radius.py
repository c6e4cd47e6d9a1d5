"""Radii as people write them, the same in Python and on pages."""

from importlib.resources import files

import pytest
from browser import browser  # noqa: F401  a fixture

from gammacaps.explorer.static.bundling import bundled
from gammacaps.radius import radius

SHOWN = {
    0.1: "0.1",
    0.3: "0.3",
    1: "1",
    0: "0",
    0.2: "0.2",  # 51/255, but nobody writes it so
    0.031: "0.031",
    0.005: "0.005",
    8 / 255: "8/255",
    2 / 255: "2/255",
    0.031373: "8/255",  # as a file with few digits has it
    0.1234: "0.1234",
    0.1231: "0.1231",
    0.0123456789: "0.0123457",
    128 / 255: "128/255",
    2.5: "2.5",
    0.30000000000000004: "0.3",
}


@pytest.mark.parametrize(("eps", "words"), SHOWN.items())
def test_a_radius_is_written_as_people_do(eps, words):
    assert radius(eps) == words


def test_two_radii_of_one_table_are_told_apart():
    assert len({radius(k / 10_000) for k in range(10_001)}) == 10_001


def test_pages_write_it_alike(browser):  # noqa: F811  the fixture
    page = browser.new_page()
    source = (files("gammacaps.explorer") / "page" / "make.js").read_text("utf-8")
    page.add_script_tag(content=bundled({"make.js": source}, "make.js", shown_as="page"))
    assert page.evaluate("all => all.map(page['make.js'].radius)", list(SHOWN)) == list(SHOWN.values())
    page.close()
