"""The explorer in a real browser: draw, pick, attack, click, share, export; with what goes wrong said to people."""

import base64
import io
import json
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import Watch, faults
from PIL import Image
from serving import asked, make_run, serving

from gammacaps.explorer import answers, questions, server
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PICTURES = Path(__file__).parents[2] / "screenshots"  # kept to be looked at; git ignores it


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """Generated inputs in no time."""
    monkeypatch.setattr(questions, "STARTS", 2)
    monkeypatch.setattr(questions, "STEPS", 5)


@pytest.fixture(scope="module")
def alone(networks):
    """The address of a page with one network."""
    with serving(networks[:1]) as (port, _):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def both(port):
    """The address of a page with two."""
    return f"http://127.0.0.1:{port}/"


@pytest.fixture
def opened(browser):
    contexts = []

    def open_page(address, viewport=DESK, tree=True, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20000)
        watch = Watch(page)
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        if tree:
            page.wait_for_selector(".tree svg")
        return page, watch

    yield open_page
    for context in contexts:
        context.close()


def keep(page, name):
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def drag(page, *points):
    """A stroke over the pad, by shares of its side."""
    box = page.locator("#pad").bounding_box()
    for n, (x, y) in enumerate(points):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=8 if n else 1)
        if n == 0:
            page.mouse.down()
    page.mouse.up()


def pad_pixels(page):
    """What the pad shows, as bytes (28, 28)."""
    url = page.locator("#pad").evaluate("pad => pad.toDataURL()")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))[..., 0]


def shown_scores(page, place=0):
    figures = page.locator(".bars").nth(place).locator("td.figures").all_inner_texts()
    return [float(figure.split()[-1]) for figure in figures]


def settled(page):
    """Waits until every network has answered what was asked last."""
    page.wait_for_selector("#networks:not(:has(.busy))")


def until(page, condition):
    for _ in range(200):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never came to that")


def set_slider(page, name, value):
    page.locator(f"#{name}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); "
        "slider.dispatchEvent(new Event('change')); }",
        str(value),
    )


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
    assert shown_scores(page) != before
    page.locator("#eraser").click()
    drag(page, (0.3, 0.2), (0.7, 0.25))
    assert (pad_pixels(page) > 100).sum() < (drawn > 100).sum()
    page.locator("#undo").click()
    assert np.array_equal(pad_pixels(page), drawn)
    page.locator("#undo").click()
    assert pad_pixels(page).max() == 0
    assert watch.complaints == []


def test_the_pad_can_be_used_by_keyboard_and_by_touch(opened, alone):
    page, _ = opened(alone, has_touch=True)
    page.locator("#pad").focus()
    page.keyboard.press("c")
    for key in ("Space", "ArrowRight", "ArrowRight", "Space"):
        page.keyboard.press(key)
    page.locator("#tau").focus()  # the pen's mark goes
    assert (pad_pixels(page) > 100).sum() > 5
    before = pad_pixels(page)
    box = page.locator("#pad").bounding_box()
    page.touchscreen.tap(box["x"] + 20, box["y"] + 20)
    assert (pad_pixels(page) != before).any()


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
    assert "can't be read as an image" in page.locator("#alert p").inner_text()


def test_routing_s_iterations_can_be_stepped_through(opened, alone):
    page, _ = opened(alone)
    edges = page.locator(".tree path[data-from]")
    assert edges.count() > 5
    page.locator('[data-step="1"]').click()
    assert edges.count() == 0  # nothing is chosen yet
    assert "step=1" in page.url
    page.keyboard.press("3")
    assert edges.count() > 5
    page.get_by_text("Watch").click()
    assert page.locator('[data-step="1"]').get_attribute("aria-pressed") == "true"
    page.wait_for_selector('[data-step="3"][aria-pressed="true"]')


def test_only_active_capsules_are_shown_unless_asked(opened, alone):
    page, _ = opened(alone)
    some = page.locator(".tree [data-capsule]").count()
    set_slider(page, "tau", 0.5)
    settled(page)
    fewer = page.locator(".tree [data-capsule]").count()
    assert fewer < some
    page.locator("#all").check()
    settled(page)
    assert page.locator(".tree [data-capsule]").count() == 32 + 6 + 10


def test_an_attack_shows_both_trees_three_images_and_what_changed(opened, alone):
    page, watch = opened(alone)
    set_slider(page, "eps", 0.2)
    page.wait_for_selector(".shots")
    assert page.locator(".tree svg").count() == 2
    assert page.locator(".side h4").all_inner_texts() == ["Clean", "Attacked"]
    assert page.locator(".shots figcaption").all_inner_texts() == ["clean", "attacked", "difference × 2.5"]
    words = page.locator(".words").inner_text()
    assert "It holds" in words or "It breaks" in words
    assert "No pixel changed by more than 0.20" in words
    assert page.locator("#progress").is_hidden()
    assert len(page.locator(".bars .second").all()) == 10
    keep(page, "attacked")
    page.locator("#attack-kind").select_option("noise")
    page.wait_for_url("**attack=noise*")
    assert page.locator("#target").is_disabled()
    set_slider(page, "eps", 0)
    page.wait_for_selector(".shots", state="hidden")
    assert page.locator(".tree svg").count() == 1
    assert watch.complaints == []


def test_a_slow_attack_shows_its_progress_and_can_be_stopped(opened, alone, monkeypatch):
    begun, ended = [], []

    def slow(asked, network, tick):
        begun.append(1)
        try:
            for k in range(4000):
                tick(k, 4000)
                time.sleep(0.002)
        finally:
            ended.append(1)
        return {}

    monkeypatch.setattr(answers, "attack", slow)
    page, _ = opened(alone)
    set_slider(page, "eps", 0.37)
    page.wait_for_selector("#progress:not([hidden])")
    page.wait_for_selector("progress[value]")
    with page.expect_response("**/api/parse"):  # meanwhile the page goes on
        drag(page, (0.1, 0.1), (0.2, 0.2))
    set_slider(page, "eps", 0.38)
    page.locator("#stop").click()
    assert page.locator("#progress").is_hidden()
    until(page, lambda: len(ended) == len(begun))  # what was stopped does not go on


def test_a_capsule_can_be_clicked_read_and_switched_off(opened, alone, networks):
    page, watch = opened(alone)
    before = shown_scores(page)
    page.locator('.tree [data-capsule="1.4"]').click()
    page.wait_for_selector(".generated img")
    page.wait_for_selector(".strongest img")
    assert page.locator("#capsule h2:visible").inner_text() == "Hidden 1, capsule 4"
    assert page.locator(".strongest li").count() == 8
    assert page.locator(".serves-box .bars tr").count() == 10
    row = networks[0].audit["layers"][0]["capsules"][4]
    audit = page.locator("#capsule .audit").inner_text()
    assert row["kind"] in audit
    assert f"{row['rho']:.2f}" in audit
    keep(page, "capsule")
    page.get_by_text("Switch it off").click()
    page.wait_for_selector(".bars .second")
    assert "off=0.1.4" in page.url
    assert shown_scores(page) != before
    assert "capsule 4" in page.locator("#off").inner_text()
    page.locator("#off button").click()
    page.wait_for_selector(".bars .second", state="detached")
    assert shown_scores(page) == before
    page.locator(".strongest button").nth(1).click()
    page.wait_for_url("**sample=*")
    assert watch.complaints == []


def test_capsules_can_be_walked_through_and_chosen_by_keyboard(opened, alone):
    page, _ = opened(alone)
    page.locator('.tree [data-capsule][tabindex="0"]').focus()
    focused = "document.activeElement.dataset.capsule"
    start = page.evaluate(focused)
    assert start.startswith("2.")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) != start
    page.keyboard.press("ArrowLeft")
    name = page.evaluate(focused)
    assert name.startswith("1.")
    assert page.locator(".readout").inner_text().startswith(f"hidden 1 capsule {name[2:]}: ")
    assert page.locator(".tree.tracing").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url(f"**capsule=0.{name}*")


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
    page.locator('.tree [data-capsule^="1."]').first.click()
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
    page, _ = opened(alone + "#sample=99999", tree=False)
    page.wait_for_selector("#alert:not([hidden])")
    assert "sample must be a whole number from 0 to 499" in page.locator("#alert p").inner_text()


def test_a_view_can_be_exported(opened, alone, tmp_path):
    page, _ = opened(alone + "#sample=3&eps=0.1")
    page.wait_for_selector(".shots")

    def exported(kind):
        page.locator("#export summary").click()
        with page.expect_download() as found:
            page.locator(f'[data-export="{kind}"]').click()
        path = tmp_path / found.value.suggested_filename
        found.value.save_as(path)
        return path

    svg = ET.fromstring(exported("svg").read_text())
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}svg"))) == 3  # both trees, in one
    image = Image.open(exported("png"))
    assert image.width > 1500
    assert len(image.convert("RGB").getcolors(10**6)) > 20
    figures = json.loads(exported("json").read_text())
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
    assert "gammacaps explorer" in page.title()
    keep(page, "standalone")


def test_two_networks_stand_side_by_side(opened, both, networks):
    page, watch = opened(both)
    page.locator(".tree svg").nth(1).wait_for()
    assert page.locator(".network h3").all_inner_texts() == ["sda", "rba"]
    boxes = [page.locator(".tree").nth(n).bounding_box() for n in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[1]["x"] > boxes[0]["x"] + boxes[0]["width"]
    assert shown_scores(page, 0) != shown_scores(page, 1)
    page.locator(".network").nth(1).locator('[data-capsule^="1."]').first.click()
    page.wait_for_url("**capsule=1.1.*")
    assert "of rba" in page.locator("#capsule .where").inner_text()
    page.get_by_text("Switch it off").click()
    page.wait_for_selector(".bars .second")
    assert page.locator("#answers > div").nth(0).locator(".second").count() == 0  # the other is as it was
    set_slider(page, "eps", 0.1)
    page.locator(".shots").nth(1).wait_for()
    assert page.locator(".tree svg").count() == 4
    keep(page, "two")
    assert watch.complaints == []


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


def test_the_theme_is_remembered(opened, alone):
    page, _ = opened(alone, color_scheme="light")
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text() == "Theme: dark"
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#theme").inner_text() == "Theme: dark"


def test_without_images_one_can_still_draw(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("GAMMACAPS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    evil = '<img src=x onerror="document.title=1">'
    names = [evil, *"bcdefghij"]
    run = make_run(tmp_path / "mine", train={"data": str(tmp_path / "moved.npz")}, names=names)
    with serving(load_networks([str(run)], ExploreConfig())) as (port, _):
        page, watch = opened(f"http://127.0.0.1:{port}/", tree=False)
        assert "not on this machine" in page.locator("#pick-note").inner_text()
        assert "Draw something or pick an image" in page.locator("#answers").inner_text()
        page.locator("#export summary").click()
        page.locator('[data-export="svg"]').click()
        assert "no tree to export yet" in page.locator("#alert p").inner_text()
        drag(page, (0.2, 0.2), (0.8, 0.8))
        page.wait_for_selector(".tree svg")
        assert page.locator("#answers th").first.inner_text() == evil  # shown, and never run
        page.locator('.tree [data-capsule^="1."]').first.click()
        page.wait_for_selector(".generated img")
        assert "not on this machine" in page.locator("#capsule .real").inner_text()
        assert "gammacaps audit" in page.locator("#capsule .audit").inner_text()
        assert page.title() == "mine · gammacaps explorer"
        assert watch.complaints == []


def test_a_network_without_capsules_shows_its_scores(opened, tmp_path):
    run = make_run(tmp_path / "cnn", "cnn", filters=(2, 2), width=8)
    with serving(load_networks([str(run)], ExploreConfig())) as (port, _):
        page, watch = opened(f"http://127.0.0.1:{port}/", tree=False)
        page.wait_for_selector(".bars")
        assert "no capsules" in page.locator("#networks").inner_text()
        set_slider(page, "eps", 0.2)
        page.wait_for_selector(".shots")
        assert watch.complaints == []


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
