"""The page in a real browser: readable on every screen and to everybody, with what goes wrong said to people."""

import pytest
from browser import faults
from paging import DESK, keep, settled
from serving import serving

from gammacaps.explorer import answers, server

PHONE = {"width": 390, "height": 844}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)])
def test_axe_finds_no_serious_fault_and_nothing_is_wider_than_the_screen(opened, alone, scheme, viewport):
    page, _ = opened(alone + "#sample=3&eps=0.1&capsule=0.1.4&off=0.1.2", viewport, color_scheme=scheme)
    page.wait_for_selector(".shots")
    page.wait_for_selector(".generated img")
    page.wait_for_selector(".strongest img")
    assert faults(page) == []
    assert page.evaluate(OVERFLOW) <= 0
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (min(map(int, shade[4:-1].split(","))) > 200) == (scheme == "light")
    keep(page, f"{scheme}-{viewport['width']}")
    page.locator("#export summary").click()
    menu = page.locator("#export .items").bounding_box()
    assert menu["x"] >= 0
    assert menu["x"] + menu["width"] <= viewport["width"]


def test_a_phone_shows_the_image_every_score_and_the_tree_s_classes_at_once(opened, alone):
    page, _ = opened(alone + "#sample=3", PHONE, has_touch=True)
    for part in ("#pad", "#undo", ".answer", ".bars tr:last-child"):
        box = page.locator(part).bounding_box()
        assert 0 <= box["y"] < box["y"] + box["height"] <= PHONE["height"]
    tree = page.locator(".tree").bounding_box()
    for name in ("2.0", "2.9"):
        capsule = page.locator(f'.tree [data-capsule="{name}"]').bounding_box()
        assert tree["x"] <= capsule["x"] < capsule["x"] + capsule["width"] < tree["x"] + tree["width"]
    assert page.locator(".tree").evaluate("box => box.scrollLeft") > 0
    page.locator(".tree").evaluate("box => (box.scrollLeft = 5)")
    page.locator('[data-step="2"]').click()
    assert page.locator(".tree").evaluate("box => box.scrollLeft") == 5  # where it was swiped to, it stays


@pytest.mark.parametrize("width", [390, 700, 1000, 1280])
def test_two_networks_under_attack_are_no_wider_than_the_screen(opened, both, width):
    page, _ = opened(both + "#sample=3&eps=0.1&turn=10", {"width": width, "height": 844})
    page.locator(".shots").nth(1).wait_for()
    settled(page)
    assert page.evaluate(OVERFLOW) <= 0


def test_on_a_phone_the_answer_stays_in_sight(opened, alone):
    page, _ = opened(alone + "#sample=3&capsule=0.1.4", PHONE, has_touch=True)
    page.locator("#capsule .title-line").wait_for()
    for part in (".tree", "#capsule .title-line", "footer"):
        page.locator(part).first.scroll_into_view_if_needed()
        box = page.locator(".answer").bounding_box()
        assert 0 <= box["y"] < 60
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('.answer') !== null", middle)


def test_a_desk_shows_image_answer_tree_and_capsule_at_once(opened, alone):
    """Choosing a capsule, switching it off and reading what the scores become needs no scrolling."""
    screen = {"width": 1280, "height": 800}
    page, _ = opened(alone + "#sample=3&eps=0.1", screen)
    page.wait_for_selector(".shots")
    settled(page)

    def in_sight(*parts):
        for part in parts:
            box = page.locator(part).first.bounding_box()
            assert box["x"] >= 0 <= box["y"], part
            assert box["x"] + box["width"] <= screen["width"], part
            assert box["y"] + box["height"] <= screen["height"], part

    in_sight("#pad", ".shots img", "#eps", ".answer", ".bars", ".words", ".side:not(.under) svg")
    page.locator('.side:not(.under) [data-capsule="1.4"]').click()
    page.get_by_text("Switch it off").click()
    page.wait_for_selector("#off button")
    settled(page)
    in_sight("#pad", ".shots img", ".bars", "#off button", "#capsule h2:visible", "#capsule .title-line button")
    in_sight('.side:not(.under) [data-capsule="1.4"]', ".side:not(.under) svg")
    assert page.evaluate("[scrollX, scrollY]") == [0, 0]
    keep(page, "desk")


def test_the_theme_is_remembered(opened, alone):
    page, _ = opened(alone, color_scheme="light")
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text() == "Theme: dark"
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#theme").inner_text() == "Theme: dark"


def test_what_goes_wrong_is_said_and_can_be_tried_again(opened, networks, monkeypatch):
    with serving(networks[:1]) as (port, _):
        page, _ = opened(f"http://127.0.0.1:{port}/")
        with monkeypatch.context() as patch:
            patch.setattr(answers, "parse", lambda *_: 1 / 0)
            page.locator("#clear").click()
            page.wait_for_selector("#alert:not([hidden])")
            assert page.locator("#alert p").inner_text() == server.FAULT
        page.locator("#alert button").click()
        page.wait_for_selector("#alert", state="hidden")
    page.locator("#pad").click()  # the server is gone
    page.wait_for_selector("#alert:not([hidden])")
    assert page.locator("#alert p").inner_text() == ("The server does not answer. Is gammacaps explore still running?")
