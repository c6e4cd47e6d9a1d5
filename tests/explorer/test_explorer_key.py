"""The page in a real browser: how to read a tree lies over the tree, and whoever reads it still has the tree."""

import pytest
from browser import faults
from paging import keep

LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
READABLE = 200  # pixels of height


def size(page):
    box = page.locator(".side:not(.under) .tree svg").bounding_box()
    return box["width"], box["height"]


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_how_to_read_a_tree_leaves_the_tree_its_size(opened, alone, viewport, scheme):
    page, watch = opened(alone + "#sample=3", viewport, color_scheme=scheme)
    before = size(page)
    assert before[1] > READABLE
    page.locator("#key summary").click()
    sheet = page.locator("#key .sheet").bounding_box()
    assert size(page) == before
    tree = page.locator(".tree").bounding_box()
    assert 0 <= sheet["x"] < sheet["x"] + sheet["width"] <= viewport["width"]
    assert sheet["y"] >= page.locator("#trees").bounding_box()["y"]  # all of it can be reached
    assert sheet["y"] - tree["y"] > 0.2 * tree["height"] or viewport is PHONE  # and a part of the tree is in sight
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert faults(page) == []
    keep(page, f"key-{scheme}-{viewport['width']}")
    assert watch.complaints == []


def test_it_is_opened_and_closed_by_keyboard_or_by_a_click_elsewhere(opened, alone):
    page, _ = opened(alone + "#sample=3", LAPTOP)
    sheet, summary = page.locator("#key .sheet"), page.locator("#key summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert sheet.is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "sheet"  # arrows scroll it
    page.keyboard.press("Escape")
    assert sheet.is_hidden()
    assert page.evaluate("document.activeElement.closest('#key') !== null")
    summary.click()
    page.locator("#title").click()
    assert sheet.is_hidden()


def test_in_the_story_escape_closes_it_and_only_then_leaves_the_story(opened, alone):
    page, _ = opened(alone + "#sample=3", LAPTOP)
    page.locator("#story-open").click()
    page.wait_for_selector("#story:not([aria-busy])")
    page.locator("#key summary").click()
    page.keyboard.press("Escape")
    assert page.locator("#key .sheet").is_hidden()
    assert page.locator("#story").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#story").is_hidden()
