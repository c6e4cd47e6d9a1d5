"""The page in a real browser: pointing at capsules marks where they look, "Why?" leaves what leads to the answer."""

from paging import drag, keep, set_slider, settled, until
from serving import asked

from gammacaps.explorer import answers
from gammacaps.explorer.questions import read_parse


def leading_to(tree, layer, capsule):
    """A capsule and all whose choices lead to it, as the page names them."""
    found, wave = {f"{layer}.{capsule}"}, {capsule}
    for below in range(layer - 1, -1, -1):
        nodes = tree["layers"][below]["nodes"]
        chose = zip(nodes["index"], nodes["parent"], nodes["active"], strict=True)
        wave = {index for index, parent, active in chose if active and parent in wave}
        found |= {f"{below}.{index}" for index in wave}
    return found


def boxes(page, picture):
    style = "each => ['left', 'top', 'width', 'height'].map(side => parseFloat(each.style[side]))"
    return [each.evaluate(style) for each in page.locator(f"{picture} .patch").all()]


def test_pointing_at_a_capsule_marks_the_patch_that_it_looks_at(opened, alone, networks):
    page, watch = opened(alone + "#sample=3&eps=0.1")
    page.wait_for_selector(".shots")
    settled(page)
    found = asked(int(alone.split(":")[2][:-1]), "/api/patches")
    tree = answers.parse(read_parse({"image": {"sample": 3}}, networks), networks[0])["tree"]
    page.locator("[data-side=clean]").click()
    top = ".side:not(.under)"

    def place_of(primary):
        return [[round(100 * share, 2) for share in found["boxes"][primary // found["types"]]]]

    def shown(picture=".pad"):
        return [[round(value, 2) for value in box] for box in boxes(page, picture)]

    page.locator(f'{top} [data-capsule="0.9"]').hover()
    until(page, lambda: shown() == place_of(9))
    assert shown(".shots figure:first-child") == place_of(9)  # on the attacked image too
    nodes, lengths = tree["layers"][0]["nodes"], tree["layers"][0]["activations"]
    own = [
        (coupling * lengths[index], index)
        for index, parent, coupling in zip(nodes["index"], nodes["parent"], nodes["coupling"], strict=True)
        if parent == 4
    ]
    page.locator(f'{top} [data-capsule="1.4"]').hover()
    until(page, lambda: shown() == place_of(max(own)[1]))
    page.locator(f'{top} [data-capsule="2.{tree["predicted"]}"]').hover()
    until(page, lambda: len(shown()) >= 1)
    lit = set(page.locator(f"{top} [data-capsule].lit").evaluate_all("all => all.map(each => each.dataset.capsule)"))
    assert lit == leading_to(tree, 2, tree["predicted"])
    page.locator("#title").hover()
    until(page, lambda: shown() == [])
    page.locator(f'{top} [data-capsule="1.4"]').click()
    page.locator("#title").hover()
    until(page, lambda: shown() == place_of(max(own)[1]))  # what is chosen stays marked
    assert watch.complaints == []


def test_where_no_class_capsule_is_active_answer_and_sentence_say_so(opened, alone):
    page, watch = opened(alone + "#sample=3&tau=0.8")
    assert page.locator(".why").inner_text().startswith("No class capsule is active (longer than 0.8): ")
    assert page.locator(".answer").inner_text().endswith(", though no class capsule is active")
    page.locator("#clear").click()
    drag(page, (0.3, 0.3), (0.7, 0.7))  # of a drawing nobody knows the class
    settled(page)
    assert page.locator(".answer").inner_text().endswith(", though no class capsule is active")
    set_slider(page, "tau", 0.1)
    settled(page)
    assert "active" not in page.locator(".answer").inner_text()
    assert watch.complaints == []


def test_why_leaves_only_what_leads_to_the_answer_and_says_it_in_words(opened, alone, networks):
    page, _ = opened(alone + "#sample=3")
    answer = answers.parse(read_parse({"image": {"sample": 3}}, networks), networks[0])
    assert page.locator(".why").inner_text() == answer["why"]["words"]
    assert page.locator(".lit").count() == 0
    page.locator("#why").click()
    lit = ".tree.tracing [data-capsule].lit"
    named = set(page.locator(lit).evaluate_all("all => all.map(each => each.dataset.capsule)"))
    assert named == leading_to(answer["tree"], 2, answer["predicted"])
    faded = page.locator(".tree [data-capsule]:not(.lit)").first
    until(page, lambda: faded.evaluate("each => getComputedStyle(each.firstElementChild).opacity") == "0.3")
    keep(page, "why")
    again, _ = opened(page.url)
    assert again.locator("#why").get_attribute("aria-pressed") == "true"
    again.locator(lit).first.wait_for()
