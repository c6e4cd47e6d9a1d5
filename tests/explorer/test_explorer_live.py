"""The page in a real browser: attack and tree follow the sliders while they are dragged."""

import json

import numpy as np
from paging import keep, pad_pixels, set_slider, settled, until

from gammacaps.explorer import answers
from gammacaps.explorer.changes import changed
from gammacaps.explorer.questions import read_breaking, read_parse


def drag_slider(page, name, value):
    """Moves a slider without letting go."""
    page.locator(f"#{name}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", str(value)
    )


def watched(page, path):
    """The questions that the page asks there, as they come."""
    asked = []
    page.on("request", lambda sent: asked.append(json.loads(sent.post_data)) if path in sent.url else None)
    return asked


def test_the_attack_follows_the_slider_coarse_at_first_and_then_exact(opened, alone):
    page, watch = opened(alone + "#sample=3")
    asked = watched(page, "/api/attack")
    drag_slider(page, "eps", 0.2)
    page.wait_for_selector(".shots")
    until(page, lambda: len(asked) == 2)  # it rests, though nobody let go
    assert [question.get("coarse", False) for question in asked] == [True, False]
    settled(page)
    assert "first look" not in page.locator(".words").inner_text()
    assert page.locator(".tree svg").count() == 2
    lit = page.locator(".side:not(.under) .moved").count()
    body = {key: value for key, value in asked[1].items() if key not in ("attack", "eps")}
    whole = page.request.post(alone + "api/attack", data={**body, "attack": "pgd", "eps": 0.2}).text()
    layers = json.loads(whole.splitlines()[-1])["answer"]["changed"]["layers"]
    assert lit == sum(len(layer[kind]) for layer in layers for kind in ("moved", "appeared", "vanished"))
    assert lit > 0
    assert "eps=" not in page.url
    set_slider(page, "eps", 0.2)
    page.wait_for_url("**eps=0.2")
    assert watch.complaints == []


def test_a_button_finds_the_weakest_attack_that_breaks_the_image(opened, alone, networks):
    network = networks[0]
    found = answers.breaking(read_breaking({"image": {"sample": 3}}, networks), network, lambda done, of: None)
    assert found["eps"] is not None
    page, watch = opened(alone + "#sample=3")
    page.locator("#break").click()
    page.wait_for_url(f"**eps={found['eps']}")
    settled(page)
    assert page.locator("#broken").inner_text().endswith("does not.")
    assert page.locator("#eps").input_value() == f"{found['eps']:g}"
    names = [network.class_names[k] for k in found["predicted"]]
    assert page.locator(".answer").inner_text().split("\n")[-1].startswith(names[1])
    assert watch.complaints == []


def test_the_image_can_be_turned_shifted_blurred_and_darkened_and_the_tree_follows(opened, alone, networks):
    page, watch = opened(alone + "#sample=3")
    asked = watched(page, "/api/parse")
    drag_slider(page, "turn", 40)
    page.wait_for_selector(".words:not([hidden])")
    assert asked[0]["change"]["turn"] == 40
    set_slider(page, "turn", 40)
    set_slider(page, "blur", 1)
    set_slider(page, "dark", 0.5)
    page.wait_for_url("**turn=40&blur=1&dark=0.5")
    settled(page)
    change = {"turn": 40, "blur": 1, "dark": 0.5}
    answer = answers.parse(read_parse({"image": {"sample": 3}, "change": change}, networks), networks[0])
    image = changed(networks[0].images[3], tuple(change.items()))
    assert np.array_equal(pad_pixels(page), (image[0] * 255).round().byte().numpy())
    moved = sum(layer["counts"]["moved"] for layer in answer["changed"]["layers"])
    assert f"By the change {moved} capsule" in page.locator(".words").inner_text()
    keep(page, "turned")
    again, _ = opened(page.url)
    settled(again)
    assert np.array_equal(pad_pixels(again), pad_pixels(page))
    page.locator("#unchange").click()
    page.wait_for_url("**#sample=3")
    settled(page)
    assert page.locator(".words").is_hidden()
    assert np.array_equal(pad_pixels(page), (networks[0].images[3, 0] * 255).round().byte().numpy())
    assert watch.complaints == []


def test_who_draws_on_a_changed_image_has_a_new_one(opened, alone):
    page, _ = opened(alone + "#sample=3&right=4")
    settled(page)
    until(page, lambda: pad_pixels(page)[:, :4].max() == 0)
    shown = pad_pixels(page)
    page.locator("#pad").click(position={"x": 5, "y": 5})
    page.wait_for_url("**pixels=*")
    assert "right=" not in page.url
    assert page.locator("#right").input_value() == "0"
    assert np.array_equal(pad_pixels(page)[10:], shown[10:])
