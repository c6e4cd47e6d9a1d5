import io
import json
import sys

import pytest
import torch

from gammacaps.distributed.processes import ALONE
from gammacaps.models import create
from gammacaps.progress import Progress
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training import train as training
from gammacaps.training.learner import new_learner
from gammacaps.training.schedule import Length
from gammacaps.training.watch import Watcher

TINY = ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]")


def tiny(**changes) -> TrainConfig:
    values = {"model": TINY, "batch": 8, "steps": 5, "robust": False, "device": "cpu", **changes}
    return TrainConfig(**values)


class Seen(Watcher):
    """Notes what it is told."""

    def __init__(self, error: Exception | None = None) -> None:
        self.steps, self.due, self.closed, self.error = [], [], 0, error

    def after_step(self, taken):
        self.steps.append((taken.learner.step, taken.last, round(taken.progress, 3)))
        if taken.due(2):
            self.due.append(taken.row["step"])
        if self.error is not None:
            raise self.error

    def close(self):
        self.closed += 1


def watched_by(watcher, monkeypatch):
    own = training._watchers
    monkeypatch.setattr(training, "_watchers", lambda *given, **how: [*own(*given, **how), watcher])


def test_a_watcher_is_told_of_every_step_and_of_the_end(tmp_path, monkeypatch):
    seen = Seen()
    watched_by(seen, monkeypatch)
    training.train(tiny(), tmp_path / "run", processes=ALONE)
    assert seen.steps == [(1, False, 0.0), (2, False, 0.2), (3, False, 0.4), (4, False, 0.6), (5, True, 0.8)]
    assert (seen.due, seen.closed) == ([2, 4, 5], 1)  # every second, and the last


def test_watchers_are_closed_after_an_error_too(tmp_path, monkeypatch):
    seen = Seen(RuntimeError("of a watcher"))
    watched_by(seen, monkeypatch)
    with pytest.raises(RuntimeError, match="of a watcher"):
        training.train(tiny(), tmp_path / "run")
    assert (len(seen.steps), seen.closed) == (1, 1)


def test_until_is_the_last_step_of_this_time_and_not_the_end(tmp_path, monkeypatch):
    seen = Seen()
    watched_by(seen, monkeypatch)
    training.train(tiny(), tmp_path / "run", until=2)
    assert seen.steps == [(1, False, 0.0), (2, True, 0.2)]


def test_whichever_limit_is_nearer_ends_training():
    learner = new_learner(tiny(), create("cnn", filters=(1, 1), width=1), torch.device("cpu"))
    learner.step, learner.seconds = 5, 15.0
    assert Length(10, None).share(learner) == 0.5
    assert Length(10, 20.0).share(learner) == 0.75
    assert Length(None, 15.0).reached(learner)
    assert not Length(10, None, until=6).reached(learner)
    assert Length(10, None, until=5).reached(learner)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_training_has_a_bar_and_elsewhere_lines(tmp_path, monkeypatch, capsys):
    training.train(tiny(steps=1), tmp_path / "lines")
    words = capsys.readouterr().err
    assert words.startswith("step 1/1  loss ")
    assert words.endswith("% clean, 0:00 left\n")
    monkeypatch.setattr(sys, "stderr", Terminal())
    training.train(tiny(steps=1), tmp_path / "bar")
    assert "1/1 [" in sys.stderr.getvalue()
    assert "0:00 left" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", Terminal())
    training.train(tiny(steps=1), tmp_path / "json", as_json=True)
    assert sys.stderr.getvalue() == ""
    assert json.loads(capsys.readouterr().out)["step"] == 1


def test_progress_is_rewritten_on_a_terminal_and_seldom_elsewhere(monkeypatch, capsys):
    progress = Progress("pairs", every=5.0, started=0.0)
    progress("PGD", 1, 3)
    progress.show("too soon", now=0.0 + progress.shown_at)
    progress.show("at the end", now=progress.shown_at, always=True)
    assert capsys.readouterr().err == "PGD: 1/3 pairs\nat the end\n"
    monkeypatch.setattr(sys, "stderr", Terminal())
    Progress("pairs")("PGD", 2, 3)
    Progress("pairs", quiet=True)("PGD", 3, 3)
    assert sys.stderr.getvalue() == "\rPGD: 2/3 pairs\033[K\r"
