"""`gammacaps.check` of networks whose robustness is known: real, absent, and only seemingly there."""

import json
import re
import time

import pytest
import torch
from browser import browser, faults  # noqa: F401  a fixture
from face_networks import Rounded, trained
from torch import nn

import gammacaps
from gammacaps.attacks import pgd
from gammacaps.errors import InputError

EPS = 8 / 255


def data(count=60):
    images, labels = gammacaps.load_data("fashion-mini")
    return images[:count], labels[:count]


@pytest.mark.slow
def test_500_images_take_seconds_and_masked_gradients_are_flagged():
    images, labels = data(500)
    network = trained()
    plain = gammacaps.check(network, images, labels, eps=EPS, quiet=True)
    started = time.process_time()  # of all threads, whatever else the machine does
    masked = gammacaps.check(Rounded(network).eval(), images, labels, eps=EPS, quiet=True)
    assert time.process_time() - started < 2 * 20
    assert masked.verdict == "fail"
    failed = {check["check"] for check in masked["checks"] if check["verdict"] == "fail"}
    assert {"gradient-margin", "gradient-ce", "attainable-at-0.5"} <= failed
    assert "do not believe them" in repr(masked)
    # The rounding changes next to nothing, so that the figure is far too high.
    assert abs(masked.clean - plain.clean) < 0.03
    assert masked.worst > plain.worst + 0.1
    assert plain.verdict == "pass"


@pytest.mark.slow
def test_the_table_the_cell_and_the_page_say_the_same(tmp_path):
    images, labels = data()
    found = gammacaps.check(trained(), images, labels, eps=EPS, quiet=True)
    assert found.clean == found["clean"]["accuracy"]
    assert found.worst == found["worst"][0]["accuracy"] <= min(row["accuracy"] for row in found["attacks"])
    page = found.write_page(tmp_path / "check.html").read_text()
    for words in (repr(found), found._repr_html_(), page):
        assert f"{100 * found.clean:.1f}%" in words
        assert f"{100 * found.worst:.1f}%" in words
        assert "60 images, eps 8/255 (L-inf), attacks: quick" in words
        assert re.search("PGD-40,? eps 8/255", words)
    assert "eps 8/255, eps" not in page
    # The network first, then the measurement: no badge that readers could take for the network's mark.
    said = page.index("Right on"), page.index("Can these figures be believed?")
    assert said[0] < said[1]
    assert '<span class="badge' not in page[: said[1]]
    assert len(repr(found).splitlines()) < 25
    assert max(len(line) for line in repr(found).splitlines()) <= 120
    assert not re.search(r"""(src|href)=["'](?!data:|#)|@import|url\((?!data:)""", page)  # needs nothing else
    assert json.loads(json.dumps(found))["verdict"] == found.verdict


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_takes_the_whole_width_and_passes_axe(browser, tmp_path, width):  # noqa: F811  the fixture
    images, labels = data(20)
    path = gammacaps.check(trained(), images, labels, eps=EPS, quiet=True).write_page(tmp_path / "check.html")
    page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme="dark").new_page()
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("main").bounding_box()["width"] > 0.85 * width
    assert page.evaluate("document.documentElement.scrollHeight") < 6000
    assert page.locator(".says").bounding_box()["y"] < 200
    assert faults(page) == []


def test_a_model_s_name_is_no_markup(tmp_path):
    images, labels = data(5)
    found = gammacaps.check(lambda x: x.flatten(1)[:, :10], images, labels, attacks="fgsm", checks=False, quiet=True)
    page = found.write_page(tmp_path / "check.html").read_text()
    assert "&lt;lambda&gt;" in page
    assert "<lambda>" not in page + found._repr_html_()
    assert found.verdict is None
    assert "These figures were not checked." in page


@pytest.mark.slow
def test_a_model_that_wants_normalised_images_is_told_apart_and_wrapped():
    images, labels = data(200)
    network = trained(0.286, 0.353)
    options = {"attacks": "fgsm", "checks": False, "quiet": True}
    bare = gammacaps.check(network, images, labels, **options)
    (note,) = bare["notes"]
    assert "gammacaps.Normalized(model, mean=(0.2" in note
    assert "Note: " in repr(bare)
    wrapped = gammacaps.check(gammacaps.Normalized(network, 0.286, 0.353), images, labels, **options)
    assert wrapped["notes"] == []
    assert wrapped.clean > bare.clean
    assert gammacaps.check(trained(), images, labels, **options)["notes"] == []


def test_normalized_is_what_it_says_and_its_gradient_is_of_pixels():
    images = torch.rand(4, 3, 6, 6, requires_grad=True)
    network = nn.Sequential(nn.Flatten(), nn.Linear(108, 5))
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    scores = gammacaps.Normalized(network, mean, std)(images)
    by_hand = torch.stack([(images[:, c] - mean[c]) / std[c] for c in range(3)], dim=1)
    torch.testing.assert_close(scores, network(by_hand))
    (gradient,) = torch.autograd.grad(scores[:, 0].sum(), images)
    by_hand = network[1].weight[0].view(3, 6, 6) / torch.tensor(std).view(3, 1, 1)
    torch.testing.assert_close(gradient, by_hand.expand(4, 3, 6, 6))


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [
        ("a", 1, "mean is one number, or one for each channel, not 'a'"),
        (0, 0, "std must be above 0, not 0"),
        ((0, 0, 0), (1, 1), "mean is of 3 channels and std of 2"),
        ((), 1, r"mean is one finite number, or one for each channel, not \(\)"),
        (float("nan"), 1, "mean is one finite number"),
    ],
)
def test_what_normalized_can_t_use_is_one_sentence(mean, std, words):
    with pytest.raises(InputError, match=words):
        gammacaps.Normalized.__init__.__wrapped__(
            gammacaps.Normalized.__new__(gammacaps.Normalized), nn.Flatten(), mean, std
        )


def test_images_out_of_range_and_radii_in_bytes_are_told_with_what_to_do():
    images, labels = data(3)
    with pytest.raises(InputError, match=r"gammacaps.Normalized\(model, mean, std\)"):
        gammacaps.check(trained(), images * 2 - 1, labels)
    with pytest.raises(InputError, match=r"not 8.0: if you mean 8/255, give 0.0314"):
        gammacaps.check(trained(), images, labels, eps=8)
    assert gammacaps.robustness is gammacaps.check


def test_a_model_is_checked_in_eval_mode_and_left_as_it_was():
    images, labels = data(20)
    network = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(784, 10).eval())
    found = gammacaps.check(network, images, labels, attacks="fgsm", quiet=True)
    assert next(c for c in found["checks"] if c["check"] == "repeats")["verdict"] == "pass"
    assert found["notes"] == ["The model was in training mode; it was checked in eval mode, as it would be used."]
    assert [module.training for module in network] == [True, True, False]


def test_the_step_of_pgd_follows_each_radius():
    images, labels = data(10)
    found = gammacaps.check(trained(), images, labels, eps=(0.02, 0.5), attacks="pgd", checks=False, quiet=True)
    assert [row["step"] for row in found["attacks"]] == [0.002, 0.05]
    # As the function on its own does it.
    moved = pgd(trained(), images, labels, eps=0.5, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert (trained()(moved).argmax(1) == labels).float().mean() <= found["attacks"][1]["accuracy"] + 0.1
