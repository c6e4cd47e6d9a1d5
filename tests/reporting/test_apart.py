"""Two networks that so many images can't tell apart."""

import pytest

from gammacaps.reporting.apart import Standing, not_apart, standing
from gammacaps.reporting.page import Page, render


def test_few_images_leave_open_which_is_better_and_what_to_try_is_said():
    said = not_apart(Standing(0.1, 24, 22, 20), Standing(0.1, 24, 23, 18))
    assert said == (
        "Under attack (eps 0.1) the two networks can't be told apart with 24 test images: they differ by +8.3 points "
        "(-14.8 to +30.6), a 95% interval that holds 0. It is not paired image by image, and so wider than need be. "
        "Try more images, or a larger --eps."
    )
    weak = not_apart(Standing(8 / 255, 24, 22, 4), Standing(8 / 255, 24, 23, 2))
    assert weak.startswith("Under attack (eps 8/255) ")
    assert weak.endswith("Try more images, or a longer training.")


@pytest.mark.parametrize(
    "second",
    [
        Standing(0.1, 500, 450, 50),  # surely worse
        Standing(0.2, 24, 22, 20),  # measured at another radius
        None,
    ],
)
def test_nothing_is_said_of_networks_that_differ_or_were_not_compared(second):
    assert not_apart(Standing(0.1, 500, 450, 400), second) == ""


def test_a_figure_of_some_of_the_images_is_no_standing():
    clean = {"images": 24, "correct": 22}
    assert standing({"clean": clean}, {"eps": 0.1, "images": 20, "correct": 18}) is None
    assert standing({"clean": clean}, None) is None
    assert standing({"clean": clean}, {"eps": 0.1, "images": 24, "correct": 18}) == Standing(0.1, 24, 22, 18)


def test_a_page_of_two_says_it_below_their_verdicts():
    first, second, better = (
        Page("A network", name, (("It holds.",),), data="pics", standing=Standing(0.1, images, right, right))
        for name, images, right in (("robust", 24, 20), ("clean", 24, 18), ("clean", 24, 1))
    )
    assert "can&#x27;t be told apart with 24 test images" in render(first, second)
    assert "told apart" not in render(first, better)
    assert "told apart" not in render(first)
    assert "<title>Networks for pics, side by side" in render(first, second)
