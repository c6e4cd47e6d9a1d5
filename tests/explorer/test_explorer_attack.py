"""The page in a real browser: attacks, what they change, and how to stop them."""

import time

from paging import drag, keep, set_slider, settled, until

from gammacaps.explorer import answers


def test_an_attack_shows_both_trees_three_images_and_what_changed(opened, alone):
    page, watch = opened(alone)
    set_slider(page, "eps", 0.2)
    page.wait_for_selector(".shots")
    assert page.locator(".tree svg").count() == 2
    assert page.locator(".shots figcaption").all_inner_texts() == [
        "attacked",
        "difference × 2.5\nmid-grey: unchanged",
    ]
    clean, attacked = (page.locator(each).bounding_box() for each in ("#pad", ".shots img >> nth=0"))
    assert (attacked["width"], attacked["height"]) == (clean["width"], clean["height"])
    words = page.locator(".words").inner_text()
    assert any(verdict in words for verdict in ("It holds", "It breaks", "Wrong from the start"))
    assert "No pixel changed by more than 0.2." in words
    assert page.locator("#progress").is_hidden()
    assert len(page.locator(".bars .second").all()) == 10
    keep(page, "attacked")
    trees = [page.get_by_role("region", name=f"{side} tree") for side in ("Clean", "Attacked")]
    assert [tree.count() for tree in trees] == [0, 1]  # one lies on the other
    page.locator("[data-side=clean]").click()
    assert [tree.count() for tree in trees] == [1, 0]
    assert "side=clean" in page.url
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


def test_the_verdict_knows_what_a_test_image_is(opened, alone, monkeypatch):
    shirt, dress, trouser, boot, coat = 6, 3, 1, 9, 4
    cases = [  # what it is, what it is taken for without and with the attack, the attack's target; answer and verdict
        (shirt, shirt, shirt, None, "Shirt, which is right", "It holds: still Shirt"),
        (shirt, shirt, dress, None, "Dress; it is a Shirt", "It breaks: Shirt → Dress"),
        (trouser, dress, dress, None, "Dress; it is a Trouser", "Wrong from the start: Dress, though it is a Trouser"),
        (boot, dress, dress, None, "Dress; it is an Ankle boot", "The attack leaves it at Dress."),
        (boot, dress, coat, None, "Coat; it is an Ankle boot", "The attack makes it Coat."),
        (trouser, dress, trouser, None, "Trouser, which is right", "The attack happens to make it right."),
        (trouser, dress, dress, dress, "Dress; it is a Trouser", "aims at Dress, which is its answer already"),
        (shirt, shirt, shirt, shirt, "Shirt, which is right", "Aimed at Shirt, its answer already"),
        (None, shirt, dress, None, "Dress", "It breaks: Shirt → Dress"),
    ]
    page, watch = opened(alone)
    plain = answers.attack
    for n, (label, before, after, target, answer, verdict) in enumerate(cases):

        def said(asked, network, tick, label=label, before=before, after=after, target=target):
            found = plain(asked, network, tick)
            found["clean"]["predicted"], found["attacked"]["predicted"] = before, after
            return {**found, "label": label, "target": target}

        monkeypatch.setattr(answers, "attack", said)
        set_slider(page, "eps", 0.21 + n / 100)  # each is a question of its own
        until(page, lambda verdict=verdict: verdict in page.locator(".words").inner_text())
        settled(page)
        assert page.locator(".answer").inner_text().splitlines()[-1].strip() == answer
        assert verdict in page.locator(".words").inner_text()
    assert watch.complaints == []


def test_under_attack_what_a_capsule_did_to_the_clean_image_is_told(opened, alone):
    page, _ = opened(alone + "#sample=3&eps=0.1&off=0.1.4")
    page.wait_for_selector(".shots")
    settled(page)
    assert "Without it, on the clean image: " in page.locator("#answers .note").inner_text()
    page.locator("#off button").click()
    page.wait_for_selector("#answers .note", state="detached")
