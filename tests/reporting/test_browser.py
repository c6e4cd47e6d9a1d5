"""The page in a real browser: complete, quiet, readable on a phone, usable by keyboard, with and without scripts."""

import pytest
from browser import Watch, faults
from sample import CLASSES, EVIL, bare, full

from gammacaps.reporting.page import render
from gammacaps.reporting.run import report_run

FIRST = ("images", "curve", "hidden")
FOLDED = ("network", "scores", "checks", "strength", "classes", "trees", "audit", "maps", "rerun")
PHONE, DESK = {"width": 390, "height": 800}, {"width": 1280, "height": 800}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# What has the focus: its id, its anchor, its role or its kind.
FOCUS = """(() => { const e = document.activeElement;
    return e.id || e.getAttribute('href') || e.getAttribute('role') || e.tagName.toLowerCase(); })()"""


# Boxes that hide or scroll some of what they hold, but for those that are there for people who hear the page.
CUT = """[...document.querySelectorAll("body *")].filter(e => e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1
    && getComputedStyle(e).overflowX !== "visible").map(e => e.outerHTML.slice(0, 80))"""


def open_all(page):
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(full()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser, address):
    """Opens the page with these options; pages are closed at the end."""
    contexts = []

    def open_page(viewport=DESK, where=address, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        watch = Watch(page)
        page.goto(where)
        return page, watch

    yield open_page
    for context in contexts:
        context.close()


def test_every_section_is_there_and_nothing_is_fetched_or_complained_of(opened, address):
    check_whole(*opened(), address)


def check_whole(page, watch, address):
    ids = "all => all.map(each => each.id)"
    assert page.eval_on_selector_all(".first > section", ids) == list(FIRST)
    assert page.eval_on_selector_all(".folds > section", ids) == list(FOLDED)
    broken = "all => all.filter(each => !each.complete || !each.naturalWidth || !each.alt).length"
    assert page.eval_on_selector_all("img", broken) == 0
    assert watch.left() == []
    assert [url for url in watch.requests if not url.startswith("data:")] == [address]
    assert watch.complaints == []


def test_names_are_shown_and_never_run(opened):
    page, _ = opened()
    assert page.title() == f"A network for {EVIL}"
    assert page.locator("script").count() == 1
    open_all(page)
    assert page.locator("#classes h3").nth(2).inner_text() == EVIL


@pytest.mark.parametrize("scripts", [True, False])
def test_a_phone_never_scrolls_sideways(opened, scripts):
    page, _ = opened(PHONE, java_script_enabled=scripts)
    assert page.evaluate(OVERFLOW) <= 0
    open_all(page)
    assert page.evaluate(OVERFLOW) <= 0
    # Nothing is cut: no box is narrower than what it holds, until a picture is enlarged.
    assert page.evaluate(CUT) == []
    if scripts:
        page.locator("#trees .enlarge").first.click()
        assert page.locator("#trees .wide").first.evaluate("box => box.scrollWidth > box.clientWidth")
        assert page.evaluate(OVERFLOW) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(opened, scheme):
    page, _ = opened(color_scheme=scheme)
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (min(map(int, shade[4:-1].split(","))) > 200) == (scheme == "light")
    assert faults(page) == []
    open_all(page)
    assert faults(page) == []


def test_a_phone_passes_axe_too(opened):
    page, _ = opened(PHONE)
    open_all(page)
    assert faults(page) == []


def test_a_link_opens_the_fold_that_it_names(opened, address):
    page, _ = opened(where=f"{address}#audit")
    assert page.locator("#audit > details").get_attribute("open") is not None
    assert page.locator("#maps > details").get_attribute("open") is None
    page.locator("#all").click()
    assert page.locator(".folds > section > details:not([open])").count() == 0
    assert page.locator("#all").inner_text() == "Close all"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_map_has_a_picture_for_the_page_s_paper(opened, scheme):
    page, _ = opened(color_scheme=scheme)
    open_all(page)
    shown = page.locator("#maps img:visible")
    assert shown.count() == 1
    assert scheme in shown.get_attribute("class")
    page.locator("#theme").click()  # light
    assert "on-light" in page.locator("#maps img:visible").get_attribute("class")
    page.locator("#theme").click()  # dark
    assert "on-dark" in page.locator("#maps img:visible").get_attribute("class")


def test_the_keyboard_reaches_every_control(opened):
    page, _ = opened()
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUS) == "#main"
    assert page.locator(".skip").bounding_box()["y"] >= 0  # the link to skip shows itself when it has the focus
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUS) == "main"
    page.reload()
    open_all(page)
    reached = []
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUS))
        if reached[-1] == "body":
            break
    for control in ("#main", "theme", "all", "gallery-0", "tab-0-0", "summary", "pre"):
        assert control in reached, control
    assert "tab-0-1" not in reached  # arrows go from tab to tab


def test_arrows_go_from_tree_to_tree(opened):
    page, _ = opened()
    open_all(page)
    assert page.locator("[role=tabpanel]:visible").count() == 1
    page.locator("#tab-0-0").focus()
    for key, chosen in (("ArrowRight", 1), ("End", 2), ("ArrowRight", 0), ("ArrowLeft", 2), ("Home", 0)):
        page.keyboard.press(key)
        assert page.evaluate(FOCUS) == f"tab-0-{chosen}"
        assert page.locator("[role=tabpanel]:visible").get_attribute("id") == f"panel-0-{chosen}"


def test_the_theme_can_be_chosen_and_is_remembered(opened):
    page, _ = opened(color_scheme="light")
    shades = []
    for _ in range(3):
        page.locator("#theme").click()
        shades.append((page.locator("#theme").inner_text(), page.evaluate("getComputedStyle(document.body).color")))
    assert [name for name, _ in shades] == ["Theme: light", "Theme: dark", "Theme: auto"]
    assert shades[0][1] == shades[2][1] != shades[1][1]
    page.locator("#theme").click()
    page.locator("#theme").click()
    page.wait_for_timeout(300)  # the browser stores what a page remembers in a process of its own
    page.reload()
    assert page.locator("#theme").inner_text() == "Theme: dark"


def test_hidden_capsules_can_be_chosen_by_class(opened):
    page, _ = opened()
    page.locator("#gallery-0").select_option("Trouser")
    assert page.locator("#hidden .card:visible .number").all_inner_texts() == ["1", "5"]
    assert page.locator("#hidden [role=status]").inner_text() == "2 of 8"
    page.locator("#gallery-0").select_option(CLASSES[3])  # has what lists are often joined by
    assert page.locator("#hidden .card:visible .number").all_inner_texts() == ["3"]
    page.locator("#gallery-0").select_option("")
    assert page.locator("#hidden .card:visible").count() == 6
    page.locator("#hidden .rest summary").first.click()
    assert page.locator("#hidden .card:visible").count() == 8


def test_without_scripts_and_in_print_all_is_shown(opened):
    page, _ = opened(java_script_enabled=False)
    page.locator("#trees summary").click()
    assert page.locator("#trees .panel:visible").count() == 3
    assert not page.locator("#theme").is_visible()
    page, _ = opened()
    page.locator("#gallery-0").select_option("Trouser")
    page.emulate_media(media="print")
    assert page.locator("#trees .panel:visible").count() == 3
    assert page.locator("#hidden .card:visible").count() == 8
    assert not page.locator("#all").is_visible()


def test_a_page_of_a_run_that_was_not_measured_is_whole_too(opened, tmp_path):
    path = tmp_path / "bare.html"
    path.write_text(render(bare()), encoding="utf-8")
    page, watch = opened(PHONE, path.as_uri())
    assert page.evaluate(OVERFLOW) <= 0
    open_all(page)
    assert "gammacaps evaluate runs/mine" in page.locator("#scores").inner_text()
    assert watch.complaints == []
    assert faults(page) == []


def test_the_page_of_a_run_is_as_good_as_the_sample(opened, run, quick):
    """All in one, for a run takes seconds to make."""
    address = report_run(run, quick).as_uri()
    page, watch = opened(PHONE, address)
    check_whole(page, watch, address)
    open_all(page)
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(CUT) == []
    assert faults(page) == []
