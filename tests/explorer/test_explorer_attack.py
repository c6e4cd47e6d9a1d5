"""The page in a real browser: attacks, what they change, and how to stop them."""

import time

from paging import drag, keep, set_slider, until

from gammacaps.explorer import answers


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
