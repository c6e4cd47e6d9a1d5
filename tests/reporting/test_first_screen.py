"""The page of a network that comes along, and of two side by side: its first screen, and figures that stand twice."""

import re
import shutil
from collections import defaultdict
from dataclasses import replace

import pytest
from browser import faults

from gammacaps.errors import InputError
from gammacaps.models.shipped import stored_at
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.run import report_networks, report_runs
from gammacaps.reporting.study import open_pair

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
VALUE = re.compile(r'data-value="([^"]+)">([^<]*)<')
QUICK = ReportConfig(starts=1, steps=1, images=200, trees=1, device="cpu")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A copy of a shipped network, as a run."""
    folder = tmp_path_factory.mktemp("shipped") / "fashion-mini"
    shutil.copytree(stored_at("fashion-mini"), folder)
    return folder


@pytest.fixture(scope="module")
def alone(shipped):
    return report_runs((shipped,), QUICK)


@pytest.fixture(scope="module")
def both(shipped, run):
    return report_runs((shipped, run), replace(QUICK, images=20))


def texts_by_key(page: str) -> dict[str, list[str]]:
    found = defaultdict(list)
    for key, text in VALUE.findall(page):
        found[key].append(text)
    return found


def test_no_figure_stands_twice_with_different_values(alone, both):
    for path in (alone, both):
        found = texts_by_key(path.read_text())
        assert {key: texts for key, texts in found.items() if len(set(texts)) > 1} == {}
        twice = {key.split()[0] for key, texts in found.items() if len(texts) > 1}
        assert twice >= ({"accuracy", "gamma", "active"} if path == alone else {"1", "2"})


def test_figures_that_are_not_marked_are_the_same_too(alone):
    """Those that stand in sentences: the audit's own, and D, which a map once told of other images."""
    page = alone.read_text()
    (gamma,), (active,) = (texts_by_key(page)[key] for key in ("gamma-capsules", "active capsules"))
    assert re.findall(r"(\d+) of (\d+) active hidden capsules are gamma-capsules", page) == [(gamma, active)]
    (d,) = texts_by_key(page)["D"]
    assert set(re.findall(r"\bD (?:is|=) ([0-9.]+)", page)) <= {d}
    # A capsule's classes are the audit's, on its card as in the table.
    cards = re.findall(r'data-classes="\[&quot;(.*?)&quot;\]".*?<span class="number">(\d+)</span>', page)
    assert cards
    for classes, number in cards:
        names = classes.split("&quot;, &quot;")
        row = re.search(rf'<tr><th scope="row">{number}</th>.*?data-name="Goes with">(.*?)</td>', page)[1]
        assert row == "all classes" or row.startswith("all but") or all(name in row for name in names)


def opened(browser, path, viewport):
    page = browser.new_context(viewport=viewport).new_page()
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("which", ["alone", "both"])
def test_the_first_screen_holds_verdict_images_curve_and_a_row_of_capsules(browser, request, which):
    page = opened(browser, request.getfixturevalue(which), DESK)
    card = "#hidden .card" if which == "alone" else "#hidden h2"  # two networks have a row of images more
    for part in (".says", "#images .answers", "#curve .chart", card):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= DESK["height"], part
    assert page.locator("#images .answers li").count() == 10
    row = [page.locator("#hidden .card").nth(k).bounding_box()["y"] for k in range(3 if which == "both" else 6)]
    assert len(set(row)) == 1
    assert page.evaluate("document.documentElement.scrollHeight") < 6000
    assert faults(page) == []


@pytest.mark.parametrize("which", ["alone", "both"])
def test_a_phone_shows_all_of_it_in_less_than_6000_pixels(browser, request, which):
    page = opened(browser, request.getfixturevalue(which), PHONE)
    assert page.evaluate("document.documentElement.scrollHeight") < 6000
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_two_networks_stand_side_by_side(shipped, run, both):
    assert both == shipped / "side-by-side.html"
    page = both.read_text()
    assert "1 fashion-mini, trained under attack" in page
    assert f"2 {run.name}, trained under attack" in page
    # What both sections begin with is said once.
    assert page.count("For each image the network couples") == 1
    assert "fashion-mini (Worst case of all attacks)" in page  # both lines are in one chart
    assert re.search(rf"{run.name} \(Worst case of (one|\d+) attacks?\)", page)  # of as many as were run
    assert f"gammacaps report {shipped} {run}" in page


def test_both_look_at_the_same_images_under_attack_of_one_radius(shipped, run):
    first, second = open_pair((shipped, run), replace(QUICK, images=20))
    assert first.pictured.places == second.pictured.places
    assert first.pictured.eps == second.pictured.eps == 0.1
    assert (first.pictured.attacked != second.pictured.attacked.to(first.pictured.attacked)).any()


def test_three_networks_are_too_many(shipped):
    with pytest.raises(InputError, match="about one network, or about two side by side, not 3: name fewer"):
        report_networks((shipped, shipped, shipped), QUICK)
