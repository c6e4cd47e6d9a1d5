"""The checks of the report: each row says in words what its number is."""

import json

import pytest

from gammacaps.names import SHIPPED, shipped_names
from gammacaps.reporting.sections.checks import NAMES, checks, draw, number


@pytest.mark.parametrize("name", [*NAMES, "learned", "gradient-margin", "gradient-ce-log"])
def test_the_number_of_every_check_has_words(name):
    before, shown, after = number(name, 0.123)
    assert shown in ("12.3%", "0.123", "0.123 × eps")
    assert shown.endswith("%") == after.startswith("of the ") == (before == "")
    assert len(f"{before} {shown} {after}".split()) > 3


def test_what_was_not_judged_has_no_number_and_an_unknown_check_has_no_words():
    assert number("gradient-ce-log", None) == ("", "", "")
    assert number("of-tomorrow", 0.5) == ("", "0.5", "")
    assert number("inside-the-ball", 4e-8) == ("A change goes beyond eps by", "less than 0.0001", "")
    assert number("steps-reach-eps", 1.0) == ("The steps reach", "1 × eps", "")


@pytest.mark.parametrize(
    ("value", "words"), [(None, ""), (0.0, "0"), (3e-9, "less than 0.0001"), (0.3333, "0.333"), (12, "12")]
)
def test_a_number_that_is_no_share_is_short(value, words):
    assert number("inside-the-ball", value)[1] == words


@pytest.mark.parametrize("network", shipped_names())
def test_rows_of_shipped_networks_show_no_bare_number(network):
    shown = checks(json.loads((SHIPPED / network / "results.json").read_text("utf-8")))
    assert all(check.before or check.after for check in shown if check.number)
    drawn = draw(shown)
    assert "<small>of the images fall only to longer attacks</small>" in drawn
