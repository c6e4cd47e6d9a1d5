"""The page in a real browser: the guided story, walked by keyboard, tells what the page shows, and locks nothing."""

import dataclasses
import json
import re

import pytest
from browser import faults
from paging import DESK, drag, keep, pad_pixels, set_slider, settled, until
from serving import serving

from gammacaps.explorer import answers
from gammacaps.explorer.questions import read_attack, read_breaking

PHONE = {"width": 390, "height": 844}
MOST_WORDS = 59
TITLES = ["Vote", "Agree", "Tree", "Attack", "Break"]
LAST, LAST_ALONE = "The network that does not break", "At the strength it was trained for"
FOCUS = "document.activeElement.id"
SEEN = "[...document.querySelectorAll('.told')].filter(each => each.getBoundingClientRect().height > 0).length"


def told(page):
    """The words of the step on show, once it is worked out."""
    page.wait_for_selector("#story:not([aria-busy])")
    page.wait_for_function("!['', '…'].includes(document.getElementById('story-text').textContent)")
    settled(page)
    return page.locator("#story-text").inner_text()


def address(page):
    """What stands behind the # once it rests: it is written a little after the view."""
    before = None
    while (now := page.url) != before:
        before = now
        page.wait_for_timeout(300)
    return now.partition("#")[2]


def begin(page):
    page.locator("#story-open").focus()
    page.keyboard.press("Enter")
    return told(page)


def walk(page, last=LAST_ALONE):
    """All six steps by the Enter key: their words, and the address at each."""
    found = []
    words = begin(page)
    for number, title in enumerate([*TITLES, last], start=1):
        assert page.locator("#story-title").inner_text() == f"{number} of 6: {title}"
        assert page.evaluate(FOCUS) == "story-next"
        assert page.evaluate(SEEN) > 0
        found.append((words, address(page)))
        page.keyboard.press("Enter")
        words = told(page) if number <= len(TITLES) else ""
    return found


def test_the_story_is_walked_by_keyboard_and_tells_the_figures_of_the_page(opened, alone, networks):
    page, watch = opened(alone + "#sample=7&eps=0.05&tau=0.2&capsule=0.1.4")
    page.wait_for_selector(".shots")
    settled(page)
    before = page.url, pad_pixels(page)
    steps = walk(page)
    for words, _ in steps:
        assert len(words.split()) <= MOST_WORDS, words
    page.wait_for_selector("#story", state="hidden")
    until(page, lambda: page.url == before[0])
    settled(page)
    assert (pad_pixels(page) == before[1]).all()
    assert page.locator("#eps-value").inner_text() == "0.05"
    assert page.evaluate(FOCUS) == "story-open"
    assert page.locator(".told").count() == 0
    # What was said is what the network answers.
    network, names = networks[0], networks[0].class_names
    sample = int(re.search(r"sample=(\d+)", steps[0][1])[1])
    image = {"image": {"sample": sample}, "tau": 0.2}
    hit = answers.attack(read_attack({**image, "eps": network.eps}, networks), network, lambda *_: None)
    was = hit["clean"]["predicted"]
    scores = [f"{hit[side]['scores'][was]:.2f}" for side in ("clean", "attacked")]
    assert f"score of {names[was]} goes from {scores[0]} to {scores[1]}" in steps[3][0]
    weakest = answers.breaking(read_breaking(image, networks), network, lambda *_: None)
    assert f"{weakest['eps']:g}" in steps[4][1]
    assert f"It now says {names[weakest['predicted'][1]]}" in steps[4][0]
    lengths = hit["clean"]["tree"]["layers"][1]["activations"]
    assert f"{sum(one > 0.2 for one in lengths)} of {len(lengths)} hidden" in steps[1][0]
    assert "why=1" in steps[2][1]
    assert f"eps={network.eps:g}" in steps[5][1]  # trained under attack: back at that radius
    assert watch.complaints == []


def test_of_two_networks_it_shows_which_one_holds(opened, both, networks):
    page, watch = opened(both)
    steps = walk(page, LAST)
    for words, _ in steps:
        assert len(words.split()) <= MOST_WORDS, words
    sample = {"image": {"sample": int(re.search(r"sample=(\d+)", steps[0][1])[1])}, "tau": networks[0].tau}
    eps = [
        answers.breaking(read_breaking({**sample, "network": n}, networks), networks[n], lambda *_: None)["eps"] or 1
        for n in (0, 1)
    ]
    weaker, stronger = sorted((0, 1), key=eps.__getitem__)
    assert eps[weaker] < 1  # weights that nobody trained break
    assert f"breaks {networks[weaker].name}" in steps[4][0]
    assert f"eps={eps[weaker]:g}" in steps[4][1]
    if eps[weaker] < eps[stronger]:
        assert steps[5][0].startswith(f"{networks[stronger].name}, trained under attack, has been attacked just as")
    else:
        assert steps[5][0].startswith("On this image neither is stronger")
    assert watch.complaints == []


def test_a_radius_between_two_steps_of_the_slider_is_the_same_in_all_steps(opened, networks):
    trained = [dataclasses.replace(network, eps=8 / 255) for network in networks]
    with serving(trained) as (port, _):
        page, watch = opened(f"http://127.0.0.1:{port}/")
        begin(page)
        for _ in range(3):
            page.keyboard.press("Enter")
            words = told(page)
        assert "Each pixel may change by 8/255" in words
        assert page.locator("#eps-value").inner_text() == "8/255"
        page.wait_for_url("**eps=0.03137*")
        assert (
            "No pixel changed by more than 8/255."
            in page.locator(".network .words, #attacked .words").first.inner_text()
        )
        page.locator("#attack-kind").select_option("fgsm")
        settled(page)
        assert page.locator("#eps-value").inner_text() == "8/255"  # another attack, as strong
        page.locator("#attack-kind").select_option("pgd")
        broke = ", and the answer is now" in words
        page.locator("#story-next").click()
        told(page)
        if broke:
            assert float(re.search(r"eps=([\d.]+)", address(page))[1]) <= 8 / 255
        page.locator("#story-leave").click()
        set_slider(page, "eps", 0.03)  # the slider has no step nearer to it
        settled(page)
        assert page.locator("#eps-value").inner_text() == "8/255"
        set_slider(page, "eps", 0.04)
        assert page.locator("#eps-value").inner_text() == "0.04"
        assert watch.complaints == []


def test_the_patch_and_way_of_one_capsule_are_marked_at_first(opened, alone):
    page, _ = opened(alone)
    begin(page)
    assert page.locator(".pad .patch").count() == 1
    assert page.locator('.side:not(.under) [data-capsule^="0."].lit').count() == 1
    page.locator("#story-leave").click()
    until(page, lambda: page.locator(".patch, .lit").count() == 0)


def test_escape_leaves_from_anywhere_and_nothing_is_locked(opened, alone):
    page, _ = opened(alone + "#sample=7")
    begin(page)
    page.keyboard.press("ArrowRight")
    told(page)
    assert page.locator("#story-title").inner_text().startswith("2 of 6")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#story') !== null")
    for _ in range(8):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#story') === null")  # the tab key goes on into the page
    page.locator("#eps").focus()
    page.keyboard.press("Escape")
    assert page.locator("#story").is_hidden()
    assert page.evaluate(FOCUS) == "eps"  # the focus is not taken from whoever is elsewhere
    page.wait_for_url("**#sample=7")


def test_who_draws_in_between_keeps_the_drawing(opened, alone):
    page, _ = opened(alone + "#sample=7")
    begin(page)
    page.locator("#clear").click()
    drag(page, (0.3, 0.3), (0.7, 0.7))
    settled(page)
    mine = pad_pixels(page)
    page.locator("#story-next").click()
    told(page)
    assert (pad_pixels(page) == mine).all()
    page.locator("#story-leave").click()
    page.wait_for_url("**pixels=*")
    assert (pad_pixels(page) == mine).all()


def test_a_slow_answer_never_tells_of_a_step_that_was_left(opened, alone):
    page, watch = opened(alone)
    begin(page)
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert "wants to fool it" in told(page)
    assert page.locator("#story-title").inner_text() == "4 of 6: Attack"
    assert watch.complaints == []


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)])
def test_axe_finds_nothing_while_it_is_told(opened, alone, scheme, viewport):
    page, _ = opened(alone, viewport, color_scheme=scheme, reduced_motion="reduce")
    begin(page)
    for number in range(1, 7):
        assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        box = page.locator("#story").bounding_box()
        assert 0 <= box["y"] < box["y"] + box["height"] <= viewport["height"]
        keep(page, f"story-{number}-{scheme}-{viewport['width']}")
        if number < 6:
            page.keyboard.press("Enter")
            told(page)


def test_with_less_motion_the_rounds_of_routing_are_not_played(opened, alone):
    page, _ = opened(alone, reduced_motion="reduce")
    begin(page)
    page.keyboard.press("Enter")
    told(page)
    assert page.locator('[data-step="3"]').get_attribute("aria-pressed") == "true"
    page, _ = opened(alone)
    begin(page)
    page.keyboard.press("Enter")
    told(page)
    assert page.locator('[data-step="1"]').get_attribute("aria-pressed") == "true"
    until(page, lambda: page.locator('[data-step="3"]').get_attribute("aria-pressed") == "true")


def test_its_words_are_read_out_as_they_change(opened, alone):
    page, _ = opened(alone)
    begin(page)
    live = page.locator("#story-text").locator("xpath=ancestor::*[@aria-live]")
    assert live.get_attribute("aria-live") == "polite"
    assert live.locator("#story-title").count() == 1
    assert page.locator("#story-next").get_attribute("aria-describedby") == "story-text"


CASES = {
    "vote": [{"label": None}],
    "agree": [{"rounds": 1, "active": 3, "of": 16}],
    "tree": [{"label": None}, {"label": 1}],
    "attack": [{"eps": 0.1, "attacked": {"scores": [0.2, 0.9], "predicted": 1}}],
    "broken": [{"found": {"eps": None, "most": 0.5}, "called": "a-network"}],
    "holds": [
        {"found": {"eps": None, "most": 0.5}, "eps": None},
        {"found": {"eps": None, "most": 0.5}, "eps": 0.1},
        {"found": {"eps": 0.1, "most": 0.5}, "eps": 0.1},
        {"found": {"eps": 0.2, "most": 0.5}, "eps": 0.1},
    ],
    "alone": [
        {"underAttack": under, "eps": 0.1, "attacked": {"scores": [0.4, 0.5], "predicted": place}}
        for under in (True, False, None)
        for place in (0, 1)
    ],
}
COMMON = {
    "names": ["Ankle boot", "clothes"],
    "clean": {"scores": [0.9, 0.1], "predicted": 0},
    "attacked": {"scores": [0.8, 0.2], "predicted": 0},
    "weaker": "a-network",
    "stronger": "another-network",
    "trained": ", trained under attack,",
    "given": "runs/a-network",
}


def test_every_way_to_tell_a_step_is_under_60_words(opened, alone):
    page, _ = opened(alone)
    for step, cases in CASES.items():
        for case in cases:
            words = page.evaluate(f"import('/page/story-words.js').then(of => of.{step}({json.dumps(COMMON | case)}))")
            assert 20 < len(words.split()) <= MOST_WORDS, words
            assert not re.search("undefined|NaN|null", words), words


def test_without_an_image_it_asks_for_one(opened, alone):
    page, _ = opened(alone)
    page.locator("#clear").click()
    settled(page)
    page.evaluate("document.querySelector('#samples').replaceChildren()")
    begin(page)
    assert "The network looks at this image" in page.locator("#story-text").inner_text()  # it takes a test image
    page.locator("#clear").click()
    settled(page)
    page.locator("#story-next").click()
    assert told(page).startswith("There is no image yet")
