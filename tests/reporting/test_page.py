import base64
import hashlib
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from sample import EVIL, bare, full, with_contents

from gammacaps.reporting.chart import chart, ticks
from gammacaps.reporting.content import Curve, Series
from gammacaps.reporting.page import render


def sections(page: str) -> dict[str, str]:
    found = re.split(r'<section id="(\w+)"', page)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_a_page_is_one_small_file_that_asks_for_nothing():
    page = render(full())
    assert len(page.encode()) < 5_000_000
    links = re.findall(r'(?:src|href|action|poster)="([^"]*)"', page)
    assert all(link.startswith(("data:", "#")) for link in links)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org/2000/svg)", page)


def test_names_are_escaped_wherever_they_stand():
    page = render(full())
    assert EVIL not in page
    assert page.count("<script>") == 1
    assert "&lt;script&gt;document.title=&quot;broken&quot;&lt;/script&gt;" in page


def test_only_the_page_s_own_script_may_run():
    page = render(full())
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page


@pytest.mark.parametrize(
    ("section", "command"),
    [
        ("scores", "gammacaps evaluate runs/mine"),
        ("checks", "gammacaps evaluate runs/mine"),
        ("audit", "gammacaps audit runs/mine"),
    ],
)
def test_what_is_missing_says_how_to_make_it(section, command):
    assert f"Run <code>{command}</code>" in sections(render(with_contents(full(), **{section: None})))[section]


def test_a_run_s_name_is_quoted_for_the_shell():
    page = render(with_contents(replace(full(), run="my runs/mine"), audit=None))
    assert "Run <code>gammacaps audit &#x27;my runs/mine&#x27;</code>" in page


def test_trees_and_the_audit_each_say_their_tau():
    contents = full().contents
    page = sections(render(with_contents(full(), trees=replace(contents["trees"], tau=0.15))))
    assert "A capsule is active when it is longer than 0.15." in page["trees"]
    assert "when it is longer than tau = 0.3." in page["audit"]
    assert re.findall("<dt>(.*?)</dt>", page["audit"]) == ["Gamma-capsule", "Non-robust", "Not useful", "Dead"]
    assert "Dead means on in none of the images" in page["hidden"]
    alone = with_contents(full(), audit=None, hidden=replace(contents["hidden"], audited=False))
    assert "Dead" not in sections(render(alone))["hidden"]


def test_sections_that_nothing_fills_are_left_out():
    assert list(sections(render(bare()))) == ["network", "scores", "audit", "rerun"]
    page = with_contents(full(), images=None, strength=None, hidden=None, trees=None)
    assert list(sections(render(page))) == ["curve", "network", "scores", "checks", "classes", "audit", "maps", "rerun"]


def test_checks_are_summed_up_with_the_worst_first():
    checks = full().contents["checks"]
    page = sections(render(full()))["checks"]
    assert "1 of 3 checks pass, 1 fails: the figures under attack can't be trusted." in page
    names = [check.name for check in sorted(checks, key=lambda check: check.verdict)]  # fail, pass, warn
    assert page.index(names[0]) < page.index(names[2]) < page.index(names[1])
    skipped = replace(checks[0], verdict="skip")
    page = render(with_contents(full(), checks=(checks[0], checks[0], skipped)))
    assert "2 of 2 checks pass: there is no reason to doubt the figures under attack." in page
    page = render(with_contents(full(), checks=checks[:2]))
    assert "1 of 2 checks pass, the others call for care" in page


@pytest.mark.slow
def test_options_and_the_package_need_no_torch():
    code = "import sys, gammacaps.reporting, gammacaps.reporting.config, gammacaps.reporting.markup"
    code += "; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 0.3, [0, 0.1, 0.2, 0.3]),
        (-0.5, 2, [-0.5, 0, 0.5, 1, 1.5, 2]),
        (0, 9, [0, 2, 4, 6, 8]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_points_stand_where_their_values_say():
    line = Series("one", ((0.0, 1.0), (0.1, 0.5), (0.2, 0.0)), ((0.9, 1.0), (0.4, 0.6), (0.0, 0.1)))
    drawn = chart(Curve("a", "eps", "share", (line,), "c"))
    # The plotting area runs from x 52 to 460 and from y 250 (0) to 14 (100%).
    assert 'd="M52.0 14.0L256.0 132.0L460.0 250.0"' in drawn
    assert 'points="52.0,14.0 256.0,108.4 460.0,226.4 460.0,250.0 256.0,155.6 52.0,37.6"' in drawn


def test_a_chart_of_other_figures_has_its_own_height():
    line = Series("one", ((0.0, -1.0), (1.0, 3.0)))
    drawn = chart(Curve("a", "x", "rho", (line,), "c", percent=False, levels=(("zero", 0.0),)))
    assert 'd="M52.0 250.0L460.0 14.0"' in drawn
    assert 'd="M52 191.0H460"' in drawn  # 0 is a quarter of the way up
    flat = chart(Curve("a", "x", "rho", (Series("one", ((0.0, 0.0),)),), "c", percent=False))
    assert "nan" not in flat


def test_lines_differ_by_their_marks_as_well():
    lines = tuple(Series(str(k), ((0.0, 0.5), (1.0, 0.5))) for k in range(5))
    drawn = chart(Curve("a", "x", "y", lines, "c"))
    assert len(set(re.findall(r'<path class="dot" [^>]* d="([^"]+)"', drawn))) == 5
