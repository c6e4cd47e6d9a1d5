"""The page in a real browser: trees are stepped through and their capsules clicked, of one network or two."""

import pytest
from browser import faults
from paging import DESK, keep, set_slider, settled, shown_scores
from serving import make_run, serving

from gammacaps.explorer import answers
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks


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


def test_of_a_capsule_it_is_told_which_classes_make_it_long_and_whether_the_search_fell_short(opened, alone, networks):
    found = [answers.capsule(networks[0], layer, capsule) for layer, capsule in ((1, 4), (2, 1))]
    serving = [bool(each["serves"]["serves"]) for each in found]
    assert serving == [True, False]
    for name, each in zip(("1.4", "2.1"), found, strict=True):
        page, _ = opened(f"{alone}#capsule=0.{name}")
        page.wait_for_selector(".generated img")
        page.wait_for_selector(".serves-box .bars")
        means = [float(mean) for mean in page.locator(".serves-box td.figures").all_inner_texts()]
        assert means == pytest.approx(sorted(each["serves"]["means"], reverse=True), abs=0.006)
        served = [networks[0].class_names[k] for k in each["serves"]["serves"]]
        assert page.locator(".serves-box tr.top th").all_inner_texts() == served
        assert ("tells none from another" in page.locator(".serves-box .note").inner_text()) == (not served)
        reached = float(page.locator(".generated strong").first.inner_text())
        assert page.locator(".generated .best img").count() == 2
        longest = each["examples"][0]["activation"]
        words = f"The search fell short: a test image makes it {longest:.2f} long."
        assert (words in page.locator(".generated").inner_text()) == (reached < longest / 2)


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


@pytest.mark.parametrize("viewport", [DESK, {"width": 390, "height": 844}], ids=["desk", "phone"])
def test_a_capsule_s_name_is_pointed_at_and_clicked_like_its_dot(opened, named, viewport):
    page, watch = opened(f"{named}#sample=3", viewport)
    assert page.locator('.tree [data-name-of="1.4"]').text_content() == "shoes"
    for name, said in (("1.4", "hidden 1 capsule 4 (shoes): "), ("2.1", "Trouser: ")):
        words = page.locator(f'.tree [data-name-of="{name}"] text').first
        words.scroll_into_view_if_needed()
        words.hover()
        assert page.locator(".readout").inner_text().startswith(said)
        assert page.locator(f'.tree.tracing [data-capsule="{name}"].lit').count() == 1
        words.click()
        page.wait_for_url(f"**capsule=0.{name}*")
        assert page.locator(f'.tree [data-capsule="{name}"]').get_attribute("aria-pressed") == "true"
    buttons = page.locator('.tree [role="button"]')
    assert buttons.count() == page.locator(".tree [data-capsule]").count()  # a name is no button of its own
    assert faults(page) == []
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
    assert page.evaluate(focused) == name  # of the tree that was drawn anew
    assert page.locator(".ring.focus").count() == 1
    page.get_by_text("Close", exact=True).press("Enter")
    page.wait_for_url(lambda url: "capsule=" not in url)
    assert page.evaluate("document.activeElement.id") == "capsule"


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


def test_a_network_without_capsules_shows_its_scores(opened, tmp_path):
    run = make_run(tmp_path / "cnn", "cnn", filters=(2, 2), width=8)
    with serving(load_networks([str(run)], ExploreConfig())) as (port, _):
        page, watch = opened(f"http://127.0.0.1:{port}/", tree=False)
        page.wait_for_selector(".bars")
        assert "no capsules" in page.locator("#networks").inner_text()
        set_slider(page, "eps", 0.2)
        page.wait_for_selector(".shots")
        assert watch.complaints == []
