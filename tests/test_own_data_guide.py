"""Every command of docs/own-data.md, on a small folder of drawn shapes, shortened by options alone."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from gammacaps.auditing.config import AuditConfig
from gammacaps.cli import main
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.reporting.config import ReportConfig
from gammacaps.start import run

GUIDE = Path(__file__).parents[1] / "docs" / "own-data.md"
SHORT = {
    "start": ["--minutes", "0.001", "--device", "cpu"],
    "data": [],
    "train": [
        *("--steps", "3", "--batch", "8", "--attack-steps", "1", "--device", "cpu"),
        *("--model", "filters=4", "primary_types=2", "hidden=[6]", "decoder=[8]"),
    ],
    "evaluate": ["--limit", "6", "--attacks", "paper", "--attack-steps", "2", "--no-checks"],
    "audit": ["--limit", "6", "--attack-steps", "1"],
    "report": ["--starts", "2", "--steps", "2", "--images", "6", "--trees", "1"],
}

QUICK = {
    "evaluation": EvaluateConfig(attacks=("fgsm",), limit=6, checks=False),
    "audit": AuditConfig(limit=6, attack_steps=1, taus=(0.5,)),
    "report": ReportConfig(starts=1, steps=1, images=6, trees=1, capsules=2),
}


def draw(folder: Path) -> None:
    """Ten pictures of 40x36 of each shape, in a random place and colour."""
    rng = np.random.default_rng(0)
    for shape in ("circle", "cross", "square"):
        (folder / shape).mkdir(parents=True)
        for k in range(10):
            image = Image.new("RGB", (40, 36), tuple(int(v) for v in rng.integers(0, 60, 3)))
            pen, colour = ImageDraw.Draw(image), tuple(int(v) for v in rng.integers(120, 256, 3))
            x, y = (int(v) for v in rng.integers(2, 16, 2))
            if shape == "circle":
                pen.ellipse((x, y, x + 18, y + 18), fill=colour)
            elif shape == "square":
                pen.rectangle((x, y, x + 16, y + 16), fill=colour)
            else:
                pen.line((x, y, x + 16, y + 16), fill=colour, width=4)
                pen.line((x + 16, y, x, y + 16), fill=colour, width=4)
            image.save(folder / shape / f"{k}.png")


@pytest.mark.slow
def test_the_guide_s_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    draw(tmp_path / "shapes")
    for name, config in QUICK.items():
        monkeypatch.setattr(run, name.upper(), config)
    commands = re.findall(r"^    gammacaps (.+)$", GUIDE.read_text(), re.MULTILINE)
    assert [command.split()[0] for command in commands] == list(SHORT)
    for command in commands:
        words = shlex.split(command)
        main([*words, *SHORT[words[0]]])
        if words[0] == "data":
            assert "Nothing must be fixed" in capsys.readouterr().out
    assert (tmp_path / "runs" / "shapes-start" / "robust" / "side-by-side.html").exists()
    page = (tmp_path / "runs" / "shapes" / "report.html").read_text()
    assert "cross" in page
    assert (tmp_path / "runs" / "shapes" / "audit.json").exists()
