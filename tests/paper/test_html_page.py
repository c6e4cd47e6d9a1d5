"""The reproduction's HTML in a real browser: one file, light and dark, on a desk and on a phone."""

import pytest
from browser import Watch, faults
from made_up import as_the_paper_says, changed

from gammacaps.paper.page import write_page
from gammacaps.paper.record import path_of, write_record

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of made-up records, of which one training is short."""
    folder = tmp_path_factory.mktemp("page") / "reproduction"
    short = changed("mnist-rba-robust-0", steps=4000)
    for name, one in (as_the_paper_says() | {short.name: short}).items():
        write_record(path_of(folder, name), one.figures, one.arrays)
        for before in one.earlier:
            write_record(path_of(folder, name, before.steps), before.figures, before.arrays)
    return write_page(folder)[2].as_uri()


@pytest.fixture
def opened(browser, address):
    contexts = []

    def open_page(viewport, scheme="light"):
        contexts.append(browser.new_context(viewport=viewport, color_scheme=scheme))
        page = contexts[-1].new_page()
        watch = Watch(page)
        page.goto(address)
        return page, watch

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_no_serious_fault_and_nothing_is_wider_than_the_screen(opened, viewport, scheme):
    page, watch = opened(viewport, scheme)
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (min(map(int, shade[4:-1].split(","))) > 200) == (scheme == "light")
    assert page.evaluate(OVERFLOW) <= 0
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.evaluate(OVERFLOW) <= 0
    assert faults(page) == []
    assert watch.left() == []
    assert watch.complaints == []


def test_the_answer_stands_on_the_first_screen_and_pictures_name_their_files(opened):
    page, _ = opened(DESK)
    lead = page.locator(".lead")
    assert lead.inner_text().startswith("Is SDA more robust than RBA, and by how much? SDA is more on MNIST")
    assert lead.bounding_box()["y"] < 200
    assert page.locator("#pgd svg.chart").first.bounding_box()["y"] < 900  # on the first screen
    captions = page.locator("figure figcaption").all_text_contents()
    assert len(captions) == page.locator("figure").count()
    assert all("reproduction/" in caption for caption in captions)
    broken = "all => all.filter(each => !each.complete || !each.naturalWidth || !each.alt).length"
    assert page.eval_on_selector_all("img", broken) == 0
    assert "the paper's took 15,000" in page.locator("#says").inner_text()
    page.locator("#claims summary").click()
    assert page.locator("#claims li").count() == 18
    told = page.locator("#claims li", has_text="Robust by gamma-capsules alone").inner_text()
    assert "can't be told" in told
    assert "too short a training (4,000 of 15,000 steps)" in told
