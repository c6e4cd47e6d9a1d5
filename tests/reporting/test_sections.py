"""Sections as a table: one's own beside ours."""

import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from sample import bare, full, with_contents

import gammacaps.reporting
from gammacaps.errors import InputError
from gammacaps.reporting import Section, add_section, sections
from gammacaps.reporting.page import compose, render
from gammacaps.reporting.study import open_study


@pytest.fixture(autouse=True)
def table():
    """The table, which is ours again after each test."""
    own = list(sections.SECTIONS)
    yield sections.SECTIONS
    sections.SECTIONS[:] = own


def longest_name(study):
    return max(study.test.class_names, key=len)


def bold(name):
    return f"<p>The longest name is <b>{escape(name)}</b>.</p>"


LONGEST = Section("longest-name", "Names & lengths", longest_name, bold)


def anchors(page):
    return [part.partition('"')[0] for part in page.split('<section id="')[1:]]


@pytest.mark.slow
def test_a_section_of_a_user_s_own_is_on_the_page(run, quick, table):
    add_section(LONGEST, before="scores")
    page = render(compose(open_study(run, quick)))
    assert anchors(page)[3:6] == ["network", "longest-name", "scores"]
    heading = '<details><summary><h2 id="longest-name-title">Names &amp; lengths</h2></summary>'
    assert f"{heading}<p>The longest name is <b>Ankle boot</b>.</p></details>" in page


def test_without_a_place_it_stands_before_the_commands(table):
    add_section(LONGEST)
    assert [section.name for section in table][-3:] == ["maps", "longest-name", "rerun"]
    assert anchors(render(with_contents(full(), **{"longest-name": "a <b>"})))[-2:] == ["longest-name", "rerun"]
    assert "longest-name" not in render(bare())


def test_added_again_it_is_replaced_where_it_stands(table):
    add_section(LONGEST, before="scores")
    add_section(replace(LONGEST, title="Better"))
    assert [(section.name, section.title) for section in table][4] == ("longest-name", "Better")
    assert len(table) == 14


@pytest.mark.parametrize(
    ("name", "before", "words"),
    [
        ("scores", "rerun", "'scores' is a section of gammacaps itself: give yours another name."),
        ("mine", "nosuch", "nosuch"),
        ('a"b', "rerun", "A section's name has lower-case letters, digits and dashes"),
    ],
)
def test_names_that_can_t_be_are_refused(name, before, words, table):
    with pytest.raises(InputError, match=words):
        add_section(Section(name, "Mine", longest_name, bold), before=before)
    assert len(table) == 13


def test_a_section_that_needs_what_the_run_lacks_is_left_out(run, quick, table):
    study = replace(open_study(run, quick), audit=None)
    needs = ("results", "audit", "capsules")
    table[:] = [Section(need, need, lambda _: "here", str, needs=(need,)) for need in needs]
    assert compose(study).contents == {"results": "here", "capsules": "here"}
    assert compose(replace(study, results=None)).contents == {"capsules": "here"}


def test_the_package_shows_what_can_be_added():
    assert gammacaps.reporting.add_section is sections.add_section
    with pytest.raises(AttributeError, match="nosuch"):
        _ = gammacaps.reporting.nosuch


@pytest.mark.slow
def test_the_guide_s_section_is_on_the_page(run, quick, table):
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    (code,) = re.findall(
        r"```python\n(.*?)```", page.partition("## A section of the report")[2].partition("\n## ")[0], re.S
    )
    exec(compile(code, "my_sections.py", "exec"), {})
    study = open_study(run, quick)
    shown = render(compose(study))
    assert [section.name for section in table][[section.name for section in table].index("hard") + 1] == "strength"
    assert "<p>Hard for it: " in shown
    assert "Run <code>gammacaps evaluate" in render(compose(replace(study, results=None)))
