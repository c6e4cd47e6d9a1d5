"""Each example runs as its first line says, on few images or steps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def output(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"captum_attributions.py", "lightning_training.py"}


def test_captum_shares_out_the_scores():
    pytest.importorskip("captum")
    out = output("captum_attributions.py")
    rows = re.findall(r"class \d: ([+-][\d.]+) against a black image, ([+-][\d.]+) by pixels", out)
    assert len(rows) == 4
    for score, shared in rows:
        assert float(score) > 0.5  # a trained network
        assert float(shared) == pytest.approx(
            float(score), abs=0.01
        )  # what 1,000 steps across kinks of ReLU and pooling miss
    assert len(re.findall(r"most by primary capsule \d+ of 200", out)) == 4


def test_a_loop_of_lightning_trains_under_attack():
    pytest.importorskip("lightning")
    printed = re.search(r"accuracy ([\d.]+), T ([\d.]+) after 4 steps", output("lightning_training.py", "4"))
    assert printed
    assert 0 < float(printed[1]) <= 1
    assert 0 < float(printed[2]) < 1
