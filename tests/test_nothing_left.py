"""What refuses leaves nothing behind: no folder, and none above it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import gammacaps
from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.evaluation.surrogate import surrogate_network
from gammacaps.start import plan


def pictures(folder: Path, count: int = 10) -> None:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for k in range(count):
            Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(folder / name / f"{k}.png")


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "start few",
        "start flat",
        "start enough --preset paper",
        "train --data few --out new/run",
        "train --data enough --preset paper",
        # NaN before there is a checkpoint:
        pytest.param("train --data enough --steps 1 --lr 1e30 --log-every 1", marks=pytest.mark.slow),
        "evaluate fashion-mini --data nowhere",
        "evaluate fashion-mini --data enough",
        "evaluate fashion-mini --beyond --data nowhere",
        "audit fashion-mini --data nowhere",
        "report fashion-mini --data nowhere",
        "explain fashion-mini --data nowhere",
        "explore fashion-mini --data nowhere",
        "explore fashion-mini --data nowhere --static new/page",
        "data flat --store new/stored",
    ],
)
def test_a_refused_command_leaves_nothing(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "TIMED", 1)
    pictures(tmp_path / "enough")
    pictures(tmp_path / "few", 2)
    (tmp_path / "flat").mkdir()
    with pytest.raises(SystemExit) as end:
        main(command.split())
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert err.strip()
    assert "Copied" not in err  # since the copy is gone
    assert left(tmp_path) == ["enough", "few", "flat"]


def test_what_was_there_before_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures(tmp_path / "few", 2)
    (tmp_path / "runs").mkdir()
    with pytest.raises(InputError, match="too few"):
        gammacaps.train("few", steps=1)
    assert left(tmp_path) == ["few", "runs"]
    with pytest.raises(InputError, match="nowhere"):
        gammacaps.audit("fashion-mini", data="nowhere", quiet=True)
    assert left(tmp_path / "runs") == []


@pytest.mark.slow
def test_a_copy_that_got_figures_stays_where_a_later_network_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gammacaps.save(gammacaps.create("small", classes=3), tmp_path / "other")
    quick = ["--attacks", "fgsm", "--limit", "10", "--no-checks", "--eps", "0.1", "--data", "fashion-mini"]
    with pytest.raises(SystemExit):
        main(["evaluate", "fashion-mini", "other", *quick])
    assert "results.json" in left(tmp_path / "runs" / "fashion-mini-own")


@pytest.mark.slow
def test_the_explorer_only_reads_a_shipped_network(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["explore", "fashion-mini", "--static", "page"])
    assert left(tmp_path) == ["page"]


def test_a_surrogate_that_can_t_be_trained_leaves_the_run_as_it_was(tmp_path):
    pictures(tmp_path / "few", 2)
    (tmp_path / "run").mkdir()
    options = {"data": str(tmp_path / "few"), "device": "cpu"}
    with pytest.raises(InputError, match="too few"):
        surrogate_network(tmp_path / "run" / "predictions" / "cnn", options, quiet=True)
    assert left(tmp_path / "run") == []
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(InputError, match="can't be written"):  # a run that is gone is not made again
        surrogate_network(tmp_path / "run" / "predictions" / "cnn", options, quiet=True)
    assert left(tmp_path) == ["few"]
