"""docs/beyond.md: its figures of the networks that ship are those of their files."""

from pathlib import Path

import pytest

from gammacaps.beyond.table import main_rows
from gammacaps.names import shipped_names
from gammacaps.runs.run import Run

PAGE = (Path(__file__).parents[2] / "docs" / "beyond.md").read_text()
UNSEEN = ("noise", "blank", "mnist", "fashion-mini", "smallnorb")


@pytest.mark.parametrize("name", shipped_names())
def test_its_rows_have_the_figures_of_the_network(name):
    beyond = Run(name).beyond()
    rates = [row["accuracy"] for _, row in main_rows(beyond)] + [beyond["corruptions"]["mean"]]
    assert f"| `{name}` | {' | '.join(f'{100 * rate:.1f}' for rate in rates)} |" in PAGE
    told = {row["source"]: f"{row['length']['auroc']:.2f}, {row['pattern']['auroc']:.2f}" for row in beyond["unseen"]}
    assert set(told) <= set(UNSEEN)
    cells = " | ".join(told.get(source, "") for source in UNSEEN)
    assert " ".join(f"| `{name}` | {cells} |".split()) in " ".join(PAGE.split())
