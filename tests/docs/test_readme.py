"""The README: short, with its words explained, its figures those of the cards, and a picture that can be made again."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from gammacaps.names import shipped_names
from gammacaps.runs.run import Run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_it_is_short():
    assert len(README.splitlines()) <= 90


@pytest.mark.parametrize("word", ["eps", "capsule", "gamma-capsule", "SDA", "RBA", "PGD"])
def test_a_word_is_explained_before_it_is_used(word):
    """It stands in bold where it is explained, and not in plain text before that."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", README.partition("\n*The attack")[2])  # below title and picture
    before, bold, _ = text.partition(f"**{word}**")
    assert bold
    assert not re.search(rf"(?<![\w*-]){re.escape(word)}(?![\w-])", before)


def test_it_says_that_class_sets_are_given():
    assert "each hidden capsule is given its set of classes before training" in " ".join(README.split())


@pytest.mark.parametrize("name", shipped_names())
def test_its_table_has_the_figures_of_the_shipped_networks(name):
    run = Run(name)
    results, audit = run.results(), run.audit()
    (row,) = (line for line in README.splitlines() if line.startswith(f"| [`{name}`]"))
    _, clean, worst, capsules = row.strip("| ").split(" | ")[1:]
    measured = results["worst"][0]  # at the radius of its training
    counts = audit["layers"][0]["counts"]
    assert clean == f"{100 * results['clean']['accuracy']:.1f}%"
    assert worst.startswith(f"{100 * measured['accuracy']:.1f}% at eps {measured['eps']:g}")
    assert ("checks failed" in worst) == any(check["verdict"] == "fail" for check in results["checks"])
    assert capsules == f"{counts['gamma-capsule']} of {len(audit['layers'][0]['capsules'])}"


@pytest.mark.slow
def test_its_picture_can_be_made_again(tmp_path):
    words = [sys.executable, str(ROOT / "scripts" / "readme_picture.py"), "--limit", "60", "--out", "picture.png"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    plain, ours = re.findall(r"(\d+)% attacked", done.stdout)
    assert int(plain) < 30 < 50 < int(ours)
    with Image.open(tmp_path / "picture.png") as drawn:
        assert drawn.width > 1000
