"""The tutorials run from the first cell to the last, and are stored without what they show."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def test_there_are_five_each_on_the_site():
    nav = (ROOT / "mkdocs.yml").read_text()
    assert len(TUTORIALS) == 5
    for path in TUTORIALS:
        title = "".join(json.loads(path.read_text())["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
        assert f"- {title}: tutorials/{path.stem}.md" in nav


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_they_are_stored_without_output(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_they_run(path, tmp_path):
    words = [sys.executable, "-W", "error", str(ROOT / "scripts" / "notebooks.py"), str(path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=550)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(rf"{path.name}: [\d.]+ s$", done.stdout.strip())


@pytest.mark.slow
def test_a_cell_that_fails_is_named(tmp_path):
    cells = [{"cell_type": "markdown", "source": ["# T"]}, {"cell_type": "code", "source": ["x = 1\n", "x / 0"]}]
    (tmp_path / "wrong.ipynb").write_text(json.dumps({"cells": cells}))
    words = [sys.executable, str(ROOT / "scripts" / "notebooks.py"), "wrong.ipynb"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "wrong.ipynb, cell 2" in done.stderr
