"""The paper's numbers against its own source."""

import re
from pathlib import Path

import pytest

from gammacaps.paper.expected import EPS, expected
from gammacaps.paper.plan import DATA

SOURCE = Path(__file__).parents[3] / "shared" / "paper" / "gamma-capsules.tex"
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


@pytest.fixture(scope="module")
def source() -> str:
    if not SOURCE.is_file():
        pytest.skip(f"the paper's source is not at {SOURCE}")
    return SOURCE.read_text()


def rows(source: str, label: str, count: int) -> list[list[float]]:
    """The rows of a table that end in so many cells of one number each."""
    end = source.index(f"\\label{{{label}}}")
    body = source[source.rindex(r"\begin{tabular}", 0, end) : source.rindex(r"\end{tabular}", 0, end)]
    found = []
    for line in body.split(r"\\"):
        cells = [re.sub(r"\\bfseries|\\textbf|[{}]", "", cell) for cell in line.split("&")][-count:]
        numbers = [NUMBER.findall(cell) for cell in cells]
        if len(cells) == count and all(len(n) == 1 and "epsilon" not in c for n, c in zip(numbers, cells, strict=True)):
            found.append([float(n[0]) for n in numbers])
    return found


def test_table_1(source):
    told = [list(expected()["structure"][d][r].values()) for d in DATA for r in ("rba", "em", "sda")]
    assert told == rows(source, "tbl:structural_experiment", 5)


@pytest.mark.parametrize("attack", ["pgd", "fgsm"])
def test_accuracy_under_attack(source, attack):
    told = [expected()[attack][d][r] for d in DATA for r in ("rba", "em", "sda")]
    assert told == rows(source, f"tbl:adversarial_experiment_{attack}", 3)


def test_confusion_matrix_and_activations(source):
    header = 1
    assert expected()["confusion"]["matrix"] == rows(source, "tbl:confusion_matrix", 10)[header:]
    assert expected()["activations"]["rows"] == rows(source, "tbl:activations_of_gen", 3)[header:]


def test_the_named_hidden_capsules(source):
    end = source.index(r"\label{tbl:hidden_capsules}")
    body = source[source.rindex(r"\begin{tabular}", 0, end) : end]
    assert expected()["hidden"] == dict(re.findall(r"^\s*(\d+) & .* & ([\w-]+) \\\\", body, re.MULTILINE))


@pytest.mark.parametrize("attack", ["pgd", "fgsm"])
def test_the_radii(source, attack):
    end = source.index(f"\\label{{tbl:adversarial_experiment_{attack}}}")
    header = source[source.rindex(r"\begin{tabular}", 0, end) : source.rindex(r"\end{tabular}", 0, end)]
    assert tuple(float(eps) for eps in re.findall(r"\\epsilon=([\d.]+)", header)) == EPS
