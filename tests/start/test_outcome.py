"""What `gammacaps start` says of its two networks."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from gammacaps.evaluation.interval import wilson
from gammacaps.runs.warnings import TrainingWarning
from gammacaps.start import outcome as module
from gammacaps.start.outcome import outcome


def figures(right: int, images: int, largest: float, verdicts: tuple[str, ...] = ()) -> dict:
    row = {"accuracy": right / images, "interval": wilson(right, images), "correct": right, "images": images}
    row["eps"] = 0.1
    often = round(largest * images)
    confusion = [[often, 0], [0, images - often]]  # only the sums of its rows matter
    names = zip(("repeats", "neighbours", "longer-attacks"), verdicts, strict=False)
    checks = [{"check": name, "verdict": verdict, "number": None, "meaning": "So it is."} for name, verdict in names]
    return {
        "clean": row,
        "worst": [row],
        "confusion": confusion,
        "class_names": ["down", "across"],
        "checks": checks,
    }


@pytest.fixture
def said(monkeypatch):
    """The sentences after the figures, for both networks being right on as many pictures."""

    def say(right: int, images: int, largest: float = 0.5, warnings: tuple[TrainingWarning, ...] = ()) -> list[str]:
        run = SimpleNamespace(results=lambda: figures(right, images, largest), warnings=lambda: warnings)
        monkeypatch.setattr(module, "Run", lambda folder: run)
        lines = outcome(Path("out"), 0.1).splitlines()
        assert lines[2] == "In brackets: the 95% interval."
        assert lines[3].startswith("Under attack (eps 0.1) the two networks can't be told apart with ")
        return lines[4:]

    return say


def test_few_test_pictures_are_not_a_network_at_chance(said):
    assert said(8, 10) == [
        f"The network trained {how} can't be told from chance with 10 test pictures (always saying 'down' would have "
        "50.0% right): more pictures are needed."
        for how in ("on clean pictures", "under attack")
    ]


@pytest.mark.parametrize(("right", "images"), [(5, 10), (6, 10), (500, 1000), (510, 1000), (100, 1000)])
def test_a_network_at_chance_is_told_what_to_try(said, right, images):
    clean, try_clean, attacked, try_attacked = said(right, images)
    words = "is stuck at chance: always saying 'down' would have 50.0% right. Try a longer training, then a lower --lr."
    assert (clean, attacked) == (
        f"The network trained on clean pictures {words}",
        f"The network trained under attack {words}",
    )
    assert try_clean.startswith("To try such options with these pictures: ")
    assert try_clean.endswith("train --data out/data --no-robust --batch 64")
    assert try_attacked.endswith("train --data out/data --eps 0.1 --attack-steps 2 --attack-step 0.07 --batch 64")


@pytest.mark.parametrize(("right", "images", "largest"), [(10, 10, 0.5), (560, 1000, 0.5), (9200, 10000, 0.9)])
def test_nothing_is_said_of_a_network_that_is_surely_better_than_chance(said, right, images, largest):
    assert said(right, images, largest) == []


def test_what_its_training_has_warned_of_is_not_said_again(said):
    lines = said(5, 10, warnings=(TrainingWarning(3, "chance", "try more steps."),))
    assert lines[0] == "The network trained on clean pictures is stuck at chance: try more steps."
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (("pass", "skip", "fail"), "1 of 2 checks fails (Longer attacks), so do not trust it."),
        (("warn", "pass", "pass"), "1 of 3 checks calls for care (The same image twice)."),
        (("pass", "pass"), "none of 2 checks found a reason to doubt it."),
    ],
)
def test_beside_the_worst_case_stands_what_the_checks_say_of_it(monkeypatch, verdicts, said):
    run = SimpleNamespace(results=lambda: figures(9, 10, 0.5, verdicts), warnings=lambda: ())
    monkeypatch.setattr(module, "Run", lambda folder: run)
    for line in outcome(Path("out"), 0.1).splitlines()[:2]:
        assert "in the worst case under attack (each pixel changed by up to 0.1) 90.0% (59.6% to 98.2%); " in line
        assert line.endswith(f"; {said}")
