"""docs/gamma.md: its figures of the networks that ship are those of their files."""

from pathlib import Path

import pytest

from gammacaps.names import shipped_names
from gammacaps.runs.run import Run

PAGE = (Path(__file__).parents[2] / "docs" / "gamma.md").read_text()


@pytest.mark.parametrize("name", shipped_names())
def test_a_row_has_the_figures_of_the_network(name):
    run = Run(name)
    worst, audit = run.results()["worst"][0], run.audit()
    capsules, classes, pattern = audit["layers"][0]["capsules"], len(audit["class_names"]), audit["pattern"]
    at = ", ".join(str(sum(tau in capsule["gamma_capsule_at"] for capsule in capsules)) for tau in (0.1, 0.3, 0.5, 0.7))
    cells = [
        f"`{name}` {worst['eps']:g}",
        f"{100 * worst['accuracy']:.1f}",
        f"{at} of {len(capsules)}",
        str(audit["held_out"]),
        str(audit["class_sets"]),
        f"{audit['pairs_told_apart']} of {classes * (classes - 1) // 2}",
        f"{100 * pattern['clean']:.1f}, {100 * pattern['attacked']:.1f}",
        f"{100 * pattern['network_clean']:.1f}, {100 * pattern['network_attacked']:.1f}",
    ]
    assert f"| {' | '.join(cells)} |" in PAGE
