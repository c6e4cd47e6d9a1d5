"""The page in a real browser: addresses give the same view to everybody, and views can be exported."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from paging import drag, keep, pad_pixels, set_slider, settled, shown_scores, until
from PIL import Image


@pytest.mark.parametrize("drawn", [True, False])
def test_an_address_gives_the_same_view_again(opened, alone, drawn):
    page, _ = opened(alone)
    if drawn:
        page.locator("#clear").click()
        drag(page, (0.2, 0.5), (0.8, 0.6))
    set_slider(page, "eps", 0.15)
    page.wait_for_selector(".shots")
    page.locator("#target").select_option("Bag")
    settled(page)
    page.locator('.side:not(.under) [data-capsule^="1."]').first.click()
    page.wait_for_url("**capsule=*")
    page.locator('[data-step="2"]').click()
    view = (pad_pixels(page), shown_scores(page), page.locator(".tree").last.inner_html(), page.url)
    again, _ = opened(page.url)
    again.wait_for_selector(".shots")
    again.wait_for_selector(".generated img")
    settled(again)
    assert again.url == view[3]
    assert np.array_equal(pad_pixels(again), view[0])
    assert shown_scores(again) == view[1]
    assert again.locator(".tree").last.inner_html() == view[2]
    assert again.locator("#eps-value").inner_text() == "0.15"
    again.locator("#clear").click()
    assert pad_pixels(again).max() == 0
    again.go_back()
    until(again, lambda: np.array_equal(pad_pixels(again), view[0]))


def test_an_address_that_makes_no_sense_still_shows_the_page(opened, alone):
    junk = "#sample=zebra&eps=9&attack=bomb&target=99&capsule=7.7.7&off=1.2,x&pixels=%%%&step=90&tau=-3"
    page, _ = opened(alone + junk)
    assert page.locator(".tree svg").count() == 1
    assert page.locator("#notice").inner_text().endswith("left out: sample, eps, attack, target, capsule, ….")
    assert page.locator("#alert").is_hidden()


@pytest.mark.parametrize(
    ("part", "left", "words"),
    [
        ("eps=7", "sample=3", "eps"),
        ("eps=", "sample=3", "eps"),
        ("capsule=9.9", "sample=3", "capsule"),
        ("capsule=0.1.99", "sample=3", "capsule"),
        ("off=5.5,0.1.2", "sample=3&off=0.1.2", "off"),
        ("off=0.2.0", "sample=3", "off"),  # class capsules can't be
        ("tau=x", "sample=3", "tau"),
        ("pixels=zzz", "sample=3", "pixels"),
        ("step=0", "sample=3", "step"),
        ("zoom=3", "sample=3", "zoom"),
        ("eps=0&all=0&step=2", "sample=3&eps=0&all=0&step=2", ""),
    ],
)
def test_what_an_address_says_amiss_is_told_and_corrected(opened, alone, part, left, words):
    page, watch = opened(f"{alone}#sample=3&{part}")
    settled(page)
    said = page.locator("#notice").inner_text()
    assert said == (f"A part of the address was not understood and is left out: {words}." if words else "")
    assert page.url == f"{alone}#{left}"
    page.locator("#all").check()  # the view has changed, and the words go
    assert page.locator("#notice").inner_text() == ""
    assert watch.complaints == []


def test_an_image_that_is_not_there_is_told_in_words_for_people(opened, alone):
    page, _ = opened(alone + "#sample=99999")
    words = "There is no test image 99999: those here are 0 to 499. Another is shown."
    assert page.locator("#notice").inner_text() == words
    assert page.get_by_text("Try again").is_hidden()
    assert "99999" not in page.url


def test_it_is_said_that_an_address_was_copied(opened, alone):
    page, _ = opened(alone + "#sample=3", permissions=["clipboard-read", "clipboard-write"])
    page.locator("#export summary").click()
    page.locator('[data-export="link"]').click()
    until(page, lambda: page.locator("#notice").inner_text() == "The address of this view is copied.")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_a_view_can_be_opened_by_a_link_in_another_site_s_page(browser, alone):
    address = f"{alone}#sample=3&step=2"
    wiki = f'<!doctype html><a href="{address}">look</a>'
    context = browser.new_context()
    page = context.new_page()
    page.route("http://wiki.example/", lambda route: route.fulfill(body=wiki, content_type="text/html"))
    page.goto("http://wiki.example/")
    page.get_by_text("look").click()
    page.wait_for_selector(".tree svg")
    assert page.url == address
    page.reload()
    page.wait_for_selector(".tree svg")
    context.close()


def test_a_view_can_be_exported(opened, alone, networks, tmp_path):
    page, _ = opened(alone + "#sample=3&eps=0.1&capsule=0.1.4&off=0.1.2")
    page.wait_for_selector(".shots")
    page.wait_for_selector(".strongest img")
    page.wait_for_selector(".generated img")

    def exported(kind):
        page.locator("#export summary").click()
        with page.expect_download() as found:
            page.locator(f'[data-export="{kind}"]').click()
        path = tmp_path / found.value.suggested_filename
        found.value.save_as(path)
        return path

    svg = ET.fromstring(exported("svg").read_text())
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}svg"))) == 3  # both trees, in one
    pictures = [each.get("href") for each in svg.iter("{http://www.w3.org/2000/svg}image")]
    figures = json.loads(exported("json").read_text())
    answer = figures["networks"][0]  # what the server, or a page without one, has answered
    assert pictures[:2] == [answer["clean"]["png"], answer["attacked"]["png"]]
    said = ["".join(each.itertext()) for each in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert said[:2] == ["sda", "attacked by PGD, 40 steps, eps 0.1; switched off: hidden 1, capsule 2"]
    for k, name in enumerate(networks[0].class_names):
        place = said.index(name)
        assert said[place + 1] == " → ".join(f"{answer[side]['scores'][k]:.2f}" for side in ("clean", "attacked"))
    assert "not active" in said
    assert "vanished" in said
    image = Image.open(exported("png"))
    assert image.width > 1500
    assert len(image.convert("RGB").getcolors(10**6)) > 20
    assert figures["address"] == page.url
    assert figures["networks"][0]["attacked"]["tree"]["format"] == 1
    assert figures["view"]["eps"] == 0.1
    standalone = exported("html")
    text = standalone.read_text()
    assert "<script" not in text
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    page.goto(standalone.as_uri())
    assert page.locator(".tree svg").count() == 2
    assert page.locator("#pad").evaluate("image => image.naturalWidth") == 28
    assert page.locator("#off").inner_text().split("\n") == ["Switched off:", "hidden 1, capsule 2"]
    assert page.locator(".strongest img").count() == 8
    assert page.locator(".generated img").count() == 3  # of two starts, and their mean
    assert page.locator("button").count() == 0
    assert "gammacaps explorer" in page.title()
    assert page.locator("#attack").evaluate("box => getComputedStyle(box).borderTopWidth") == "0px"
    keep(page, "standalone")


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_an_exported_picture_is_as_light_or_dark_as_the_page(opened, both, tmp_path, scheme, dark):
    page, watch = opened(both + "#sample=3&turn=15", color_scheme=scheme)
    settled(page)
    page.locator("#export summary").click()
    with page.expect_download() as found:
        page.locator('[data-export="png"]').click()
    found.value.save_as(tmp_path / "view.png")
    image = Image.open(tmp_path / "view.png").convert("RGB")
    assert (max(image.getpixel((3, 3))) < 80) == dark
    assert image.height > image.width / 3  # both networks, one below the other
    assert watch.complaints == []
