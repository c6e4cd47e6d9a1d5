"""The page without a server in a real browser, from a file: the tests of the page itself, and what is its own."""

import numpy as np
import torch
from paging import drag, keep, pad_pixels, set_slider, settled, shown_scores, until
from test_explorer_attack import (  # noqa: F401  the same tests, with another address
    test_an_attack_shows_both_trees_three_images_and_what_changed,
    test_under_attack_what_a_capsule_did_to_the_clean_image_is_told,
)
from test_explorer_image import (  # noqa: F401
    test_the_keyboard_draws_lines,
    test_the_test_images_are_one_stop_of_the_tab_key_and_arrows_go_through_them,
)
from test_explorer_live import (  # noqa: F401
    test_a_button_finds_the_weakest_attack_that_breaks_the_image,
    test_who_draws_on_a_changed_image_has_a_new_one,
)
from test_explorer_people import (  # noqa: F401
    test_a_desk_shows_image_answer_tree_and_capsule_at_once,
    test_axe_finds_no_serious_fault_and_nothing_is_wider_than_the_screen,
    test_on_a_phone_the_answer_stays_in_sight,
    test_two_networks_under_attack_are_no_wider_than_the_screen,
)
from test_explorer_share import (  # noqa: F401
    test_a_view_can_be_exported,
    test_an_address_gives_the_same_view_again,
    test_an_address_that_makes_no_sense_still_shows_the_page,
)
from test_explorer_tree import (  # noqa: F401
    test_a_capsule_can_be_clicked_read_and_switched_off,
    test_a_capsule_s_name_is_pointed_at_and_clicked_like_its_dot,
    test_capsules_can_be_walked_through_and_chosen_by_keyboard,
    test_of_a_capsule_it_is_told_which_classes_make_it_long_and_whether_the_search_fell_short,
    test_only_active_capsules_are_shown_unless_asked,
    test_routing_s_iterations_can_be_stepped_through,
    test_two_networks_stand_side_by_side,
)
from test_explorer_why import test_why_leaves_only_what_leads_to_the_answer_and_says_it_in_words  # noqa: F401


def test_it_asks_for_nothing_but_its_own_files_and_shows_the_network_s_scores(opened, alone, networks):
    page, watch = opened(alone)
    for sample in (3, 11):
        page.goto(f"{alone}#sample={sample}")
        settled(page)
        wanted = networks[0].model(networks[0].images[sample : sample + 1])[0].numpy()
        until(page, lambda wanted=wanted: np.abs(np.array(shown_scores(page)) - wanted).max() < 0.0051)
    set_slider(page, "eps", 0.1)
    page.wait_for_selector(".shots")
    settled(page)
    assert "the network runs in this page" in page.locator("footer").inner_text()
    keep(page, "static")
    assert watch.left() == []
    assert {url.rpartition("/")[2] for url in watch.requests if url.startswith("file:")} == {
        "index.html",
        "network.js",
        "explorer.js",
    }
    assert watch.complaints == []


def test_what_is_drawn_is_what_the_network_gets(opened, alone, networks):
    page, watch = opened(alone)
    page.locator("#clear").click()
    drag(page, (0.3, 0.2), (0.7, 0.2), (0.5, 0.8))
    page.wait_for_url("**pixels=*")
    settled(page)
    image = torch.from_numpy(pad_pixels(page).copy()).float().view(1, 1, 28, 28) / 255
    assert image.max() == 1
    wanted = networks[0].model(image)[0].numpy()
    until(page, lambda: np.abs(np.array(shown_scores(page)) - wanted).max() < 0.0051)
    assert watch.complaints == []


def test_a_search_can_be_stopped_and_the_page_goes_on(opened, alone):
    page, watch = opened(alone)
    page.evaluate("['break', 'stop'].forEach((each) => document.getElementById(each).click())")
    page.goto(f"{alone}#sample=5")
    settled(page)
    page.wait_for_timeout(500)
    assert page.locator("#progress").is_hidden()
    assert page.locator("#broken").inner_text() == ""
    assert "eps=" not in page.url
    assert watch.complaints == []
