"""The page in a real browser: an image is drawn, picked or opened, and the network's answer to it is shown."""

import base64
import re

import numpy as np
import pytest
import torch
from paging import drag, keep, pad_pixels, settled, shown_scores
from PIL import Image
from serving import asked, make_run, serving

from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks


def test_the_first_view_is_whole_asks_nobody_else_and_complains_of_nothing(opened, alone, networks):
    page, watch = opened(alone)
    assert page.title() == "sda · gammacaps explorer"
    assert "trained under attack, eps 0.1" in page.locator("#about").inner_text()
    assert page.locator("#samples button").count() == 60
    assert page.locator('#samples button[aria-pressed="true"]').count() == 1
    first = asked(int(alone.split(":")[2][:-1]), "/api/samples?count=1")["samples"][0]["sample"]
    with torch.no_grad():
        expected = networks[0].model(networks[0].images[first : first + 1])[0]
    assert shown_scores(page) == pytest.approx(expected.tolist(), abs=0.006)
    assert np.array_equal(pad_pixels(page), (networks[0].images[first, 0] * 255).round().byte().numpy())
    assert [url for url in watch.requests if not url.startswith((alone, "data:", "blob:"))] == []
    assert watch.complaints == []
    keep(page, "first")


def test_drawing_changes_the_answer_and_the_pad_is_what_the_network_gets(opened, alone):
    page, watch = opened(alone)
    page.locator("#clear").click()
    assert pad_pixels(page).max() == 0
    settled(page)
    assert page.locator(".truth").inner_text() == ", though the image is empty"
    assert page.locator("#pad-hint").is_visible()
    before = shown_scores(page)
    with page.expect_response("**/api/parse"):
        drag(page, (0.3, 0.2), (0.7, 0.25), (0.45, 0.8))
    drawn = pad_pixels(page)
    assert drawn.max() == 255
    assert 30 < (drawn > 100).sum() < 200  # a thick line, not a blot
    settled(page)
    body = {"image": {"pixels": base64.b64encode(drawn.tobytes()).decode()}}
    answer = asked(int(alone.split(":")[2][:-1]), "/api/parse", body)
    assert shown_scores(page) == pytest.approx(answer["scores"], abs=0.006)
    assert (page.locator(".truth").count() == 1) == (max(answer["scores"]) < 0.5)  # that no class reaches it
    assert page.locator("#pad-hint").is_hidden()
    assert shown_scores(page) != before
    page.locator("#eraser").click()
    drag(page, (0.3, 0.2), (0.7, 0.25))
    assert (pad_pixels(page) > 100).sum() < (drawn > 100).sum()
    page.locator("#undo").click()
    assert np.array_equal(pad_pixels(page), drawn)
    page.locator("#undo").click()
    assert pad_pixels(page).max() == 0
    assert watch.complaints == []


def test_the_keyboard_draws_lines(opened, alone):
    page, watch = opened(alone, has_touch=True)
    page.locator("#pad").focus()
    page.keyboard.press("c")
    page.keyboard.press("ArrowLeft")
    assert pad_pixels(page).max() == 0  # the pen is up
    cursor = page.locator(".cursor")
    assert cursor.is_visible()
    page.keyboard.press("Space")
    assert "down" in cursor.get_attribute("class")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Space")
    line = pad_pixels(page)
    assert (line[13, 13:19] == 255).all()  # from the middle to the right,
    assert (line[14:18, 19] > 100).all()  # then down, without a gap
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert (pad_pixels(page) == line).all()  # lifted, it only moves
    page.wait_for_url("**pixels=*")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")  # whoever goes away lifts the pen
    assert cursor.is_hidden()
    assert (pad_pixels(page) != line).any()
    page.locator("#pad").focus()
    page.keyboard.press("u")
    assert (pad_pixels(page) == line).all()
    page.keyboard.press("u")
    assert pad_pixels(page).max() == 0  # the whole line was one stroke
    box = page.locator("#pad").bounding_box()
    page.touchscreen.tap(box["x"] + 20, box["y"] + 20)
    assert pad_pixels(page).max() > 0
    assert watch.complaints == []


def test_the_test_images_are_one_stop_of_the_tab_key_and_arrows_go_through_them(opened, alone):
    page, _ = opened(alone)
    stops = '#samples button[tabindex="0"]'
    assert page.locator(stops).count() == 1
    page.locator(stops).focus()
    focused = "[...document.activeElement.parentElement.children].indexOf(document.activeElement)"
    row = page.locator("#samples").evaluate(
        "box => [...box.children].filter(each => each.offsetTop === box.firstChild.offsetTop).length"
    )
    for key, place in (("ArrowRight", 1), ("ArrowDown", 1 + row), ("ArrowLeft", row), ("ArrowUp", 0), ("ArrowUp", 0)):
        page.keyboard.press(key)
        assert page.evaluate(focused) == place
    page.keyboard.press("End")
    assert page.evaluate(focused) == page.locator("#samples button").count() - 1
    assert page.locator(stops).count() == 1
    page.keyboard.press("Enter")
    chosen = page.evaluate("document.activeElement.dataset.sample")
    page.wait_for_url(f"**sample={chosen}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "file"


def test_an_image_can_be_picked_and_a_file_opened(opened, alone, networks, tmp_path):
    page, _ = opened(alone)
    with page.expect_response("**/api/samples*"):
        page.locator("#pick-class").select_option("Bag")
    page.locator("#samples button[aria-label$=Bag]").nth(2).click()
    number = int(re.search(r"sample=(\d+)", page.url)[1])
    assert networks[0].labels[number] == 8
    settled(page)
    assert np.array_equal(pad_pixels(page), (networks[0].images[number, 0] * 255).round().byte().numpy())
    Image.new("RGB", (300, 200), (255, 255, 255)).save(tmp_path / "white.jpg")
    page.locator("#file").set_input_files(tmp_path / "white.jpg")
    page.wait_for_url("**pixels=*")
    assert pad_pixels(page).min() > 250
    (tmp_path / "broken.png").write_bytes(b"no image")
    page.locator("#file").set_input_files(tmp_path / "broken.png")
    page.wait_for_selector("#alert:not([hidden])")
    settled(page)  # the answer to the image before does not wipe it out
    assert "can't be read as an image" in page.locator("#alert p").inner_text()


def test_without_images_one_can_still_draw(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("GAMMACAPS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    evil = '<img src=x onerror="document.title=1">'
    names = [evil, *"bcdefghij"]
    run = make_run(tmp_path / "mine", train={"data": str(tmp_path / "moved.npz")}, names=names)
    with serving(load_networks([str(run)], ExploreConfig())) as (port, _):
        page, watch = opened(f"http://127.0.0.1:{port}/", tree=False)
        assert "not on this machine: tell where with --data" in page.locator("#pick-note").inner_text()
        page.locator('[data-step="1"]').click()
        assert page.locator(".sides").inner_text() == ""  # nothing to step through, and nothing wrong
        page.locator('[data-step="3"]').click()
        assert "Draw something or pick an image" in page.locator("#answers").inner_text()
        page.locator("#export summary").click()
        page.locator('[data-export="svg"]').click()
        assert "nothing to export yet" in page.locator("#alert p").inner_text()
        drag(page, (0.2, 0.2), (0.8, 0.8))
        page.wait_for_selector(".tree svg")
        assert page.locator("#answers th").first.inner_text() == evil  # shown, and never run
        page.locator('.tree [data-capsule^="1."]').first.click()
        page.wait_for_selector(".generated img")
        assert "not on this machine" in page.locator("#capsule .real").inner_text()
        assert f"gammacaps audit {run}" in page.locator("#capsule .audit").inner_text()
        assert page.title() == "mine · gammacaps explorer"
        assert watch.complaints == []


def test_images_of_other_classes_are_shown_without_theirs(opened, runs, tmp_path):
    images = (np.random.default_rng(0).random((60, 28, 28)) * 255).astype(np.uint8)
    np.savez(tmp_path / "digits.npz", images=images, labels=np.arange(60) % 10)
    networks = load_networks([str(runs[0])], ExploreConfig(data=str(tmp_path / "digits.npz")))
    with serving(networks) as (port, _):
        page, watch = opened(f"http://127.0.0.1:{port}/#capsule=0.1.4")
        assert page.locator("#answers th").first.inner_text() == "T-shirt"
        assert page.locator("#pick-class").is_hidden()
        assert "whose classes are not this network's" in page.locator("#pick-note").inner_text()
        assert page.locator("#samples button").first.get_attribute("title") is None
        assert not re.search("which is right|it is an?", page.locator(".answer").inner_text())
        page.wait_for_selector(".strongest img")
        assert re.fullmatch(r"0\.\d\d", page.locator(".strongest button").first.inner_text().strip())
        assert watch.complaints == []


def test_a_network_for_digits_starts_with_drawn_ones_where_there_is_no_data(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("GAMMACAPS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = make_run(tmp_path / "digits", train={"data": "mnist"}, names="0123456789")
    with serving(load_networks([str(run)], ExploreConfig())) as (port, _):
        page, watch = opened(f"http://127.0.0.1:{port}/")
        assert page.locator("#samples button").count() == 30
        assert page.locator("#pick-note").inner_text() == "Digits drawn for this page."
        page.locator("#pick-note summary").click()
        assert "gammacaps data mnist fetches them" in page.locator("#pick-note").inner_text()
        assert pad_pixels(page).max() == 255
        assert watch.complaints == []
