import dataclasses
import functools
import json
import os
import subprocess
import sys

import pytest

import gammacaps
from gammacaps.audit.config import AuditConfig
from gammacaps.cli import main
from gammacaps.demo import run_demo
from gammacaps.evaluation import run as evaluation
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.report.config import ReportConfig

TINY = ["--model", "filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]", "--device", "cpu", "--batch", "16"]


def status(*arguments) -> int:
    """The exit status of a command run in this process."""
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["evaluate", "--help"], ["--version"]])
def test_help_is_instant_and_imports_no_torch(arguments):
    code = (
        "import sys; from gammacaps.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit as end: assert not end.code\n"
        "assert 'torch' not in sys.modules"
    )
    # Processor's time, and as a ratio, for machines differ and are busy: 0.2 to 0.4 s on a quiet one, where importing
    # tyro takes 0.13 s, and torch 2 s.
    times = {}
    for _ in range(3):
        for name, command in (("help", [code, *arguments]), ("tyro", ["import tyro"])):
            before = os.times()
            done = subprocess.run([sys.executable, "-c", *command], capture_output=True, text=True, check=False)
            after = os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            times.setdefault(name, []).append(used)
            assert done.returncode == 0, done.stderr
    assert min(times["help"]) < 6 * min(times["tyro"])


@pytest.mark.slow
def test_train_evaluate_and_resume_as_a_user_does(tmp_path, capsys, monkeypatch):
    run = tmp_path / "run"
    assert status("train", *TINY, "--steps", 3, "--attack-steps", 2, "--eps", 0.1, "--out", run, "--seed", 4) == 0
    assert f"gammacaps evaluate {run}" in capsys.readouterr().out
    config = json.loads((run / "config.json").read_text())
    assert config["train"]["eps"] == 0.1
    assert config["train"]["attack_step"] == 0.01  # what was not given is written out too
    assert config["model"]["hidden"] == [6]
    quick = ["--attacks", "paper", "--eps", 0.1, "--attack-steps", 2, "--no-checks"]
    assert status("evaluate", run, "--limit", 20, *quick, "--sweep", 0, 0.1) == 0
    out = capsys.readouterr().out
    assert "PGD-2 eps 0.1" in out
    assert "a network trained for 3 steps" in out
    assert (run / "sweep.png").read_bytes().startswith(b"\x89PNG")
    results = json.loads((run / "results.json").read_text())
    assert results["data"]["images"] == 20
    assert status("evaluate", run, "--limit", 10, *quick, "--json") == 0
    assert json.loads(capsys.readouterr().out)["clean"]["images"] == 10
    long = evaluation.train  # of the network to transfer from; a few steps do here
    monkeypatch.setattr(evaluation, "train", lambda c, *to, **how: long(dataclasses.replace(c, steps=3), *to, **how))
    transfer = ["--attacks", "transfer", "--eps", 0.1, "--no-checks", "--limit", 10, "--json"]
    for _ in range(2):  # the second time with the network that was kept
        assert status("evaluate", run, *transfer) == 0
        (row,) = json.loads(capsys.readouterr().out)["attacks"]
        assert (row["attack"], row["complete"]) == ("transfer", True)
    assert len(list((run / "evaluation").glob("cnn-*/model.safetensors"))) == 1
    assert status("audit", run, "--limit", 10, "--attack-steps", 1, "--eps", 0.1) == 0
    assert "hidden capsules are gamma-capsules at eps 0.1" in capsys.readouterr().out
    quick = ["--starts", 2, "--steps", 2, "--images", 20, "--trees", 1]
    assert status("report", run, *quick) == 0
    assert f"Open in a browser: {run / 'report.html'}" in capsys.readouterr().out
    assert status("explain", run, *quick) == 0
    assert (run / "explain" / "tree-1.svg").exists()
    capsys.readouterr()
    assert status("train", "--resume", run, "--steps", 5, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["step"] == 5
    assert lines[-1] == {"run": str(run)}


def test_a_config_file_in_and_options_over_it(tmp_path):
    (tmp_path / "c.toml").write_text('robust = false\nsteps = 2\nlr = 0.5\nmodel = ["filters=8", "hidden=[6]"]\n')
    arguments = ["--config", tmp_path / "c.toml", "--lr", "0.001", "--device", "cpu", "--batch", "8"]
    assert status("train", *arguments, "--out", tmp_path / "run") == 0
    train = json.loads((tmp_path / "run" / "config.json").read_text())["train"]
    assert (train["robust"], train["steps"], train["lr"], train["model"]) == (
        False,
        2,
        0.001,
        ["filters=8", "hidden=[6]"],
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "There is no command 'trian'"),
        (["train", "--epsilon", "3"], "--epsilon"),
        (["train", "--eps", "big"], "big"),
        (["train", "--eps", "-1", "--out", "RUN"], "eps must be 0 or more"),
        (["train", "--preset", "huge"], "huge"),
        (["train", "--data", "fashon-mini", "--out", "RUN"], "did you mean 'fashion-mini'"),
        (["train", "--data", "nowhere/images", "--out", "RUN"], "no file or folder nowhere/images"),
        (["train", "--data", "mnist", "--data-dir", "nowhere", "--out", "RUN"], "nowhere, does not exist"),
        (["train", "--model", "hiden=[3]", "--out", "RUN"], "did you mean 'hidden'"),
        (["train", "--device", "tpu", "--out", "RUN"], "no device 'tpu'"),
        (["train", "--device", "cuda:77", "--out", "RUN"], "cuda:77 is not on this machine"),
        (["train", "--config", "nowhere.json"], "nowhere.json can't be read"),
        (["train", "--resume", "nowhere"], "There is no run's folder nowhere"),
        (["train", "--resume", "nowhere", "--lr", "3"], "goes on with the run's own options"),
        (["train", "--resume", "nowhere", "--loss", "own"], "goes on with the run's own options"),  # the default, given
        (["train", "--resume", "nowhere", "--robust"], "goes on with the run's own options"),
        (["train", "--resume", "nowhere", "--out", "RUN"], "goes on with the run's own options"),
        (["evaluate"], "Name the run's folder, such as"),
        (["evaluate", "nowhere", "--attacks", "strongest"], "did you mean 'strong'"),
        (["evaluate", "nowhere"], "There is no run's folder nowhere"),
        (["data", "mnits"], "did you mean 'mnist'"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_status_2(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert status(*arguments) == 2
    out, err = capsys.readouterr()
    assert words in " ".join((out + err).split())
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_an_existing_run_is_kept_unless_told(tmp_path, capsys):
    run = tmp_path / "run"
    short = ["train", *TINY, "--no-robust", "--out", run]
    assert status(*short, "--steps", 1) == 0
    before = (run / "model.safetensors").read_bytes()
    assert status(*short, "--steps", 2) == 2
    assert "exists already" in capsys.readouterr().err
    assert (run / "model.safetensors").read_bytes() == before
    assert status(*short, "--steps", 2, "--overwrite") == 0
    assert (run / "model.safetensors").read_bytes() != before
    gammacaps.load(run)


def test_data_says_what_there_is(capsys, monkeypatch):
    monkeypatch.delenv("GAMMACAPS_DATA", raising=False)
    assert status("data") == 0
    assert "fashion-mini" in capsys.readouterr().out
    assert status("data", "fashion-mini") == 0
    out = capsys.readouterr().out
    assert "train: 2,000 images of 1x28x28" in out
    assert "Ankle boot" in out
    assert status("data", "fashion-mini", "--json") == 0
    assert json.loads(capsys.readouterr().out)["splits"]["test"]["images_by_class"] == [50] * 10


@pytest.mark.slow
def test_the_demo_runs_and_shows_both_networks(tmp_path, capsys, monkeypatch):
    small = functools.partial(
        run_demo,
        evaluation=EvaluateConfig(attacks=("paper",), eps=(0.1,), limit=20, device="cpu", checks=False),
        checked=EvaluateConfig(attacks=("paper",), eps=(0.1,), limit=10, device="cpu", checks=False),
        audit=AuditConfig(limit=10, taus=(), attack_steps=1, device="cpu"),
        report=ReportConfig(starts=2, steps=2, images=20, trees=1, device="cpu"),
    )
    monkeypatch.setattr("gammacaps.demo.run_demo", small)
    assert status("demo", "--out", tmp_path / "demo", "--minutes", 0.03) == 0
    out = capsys.readouterr().out
    assert "right under PGD-40 eps 0.1" in out
    for name in ("robust", "standard"):
        assert (tmp_path / "demo" / name / "results.json").exists()
    assert (tmp_path / "demo" / "attacked.png").read_bytes().startswith(b"\x89PNG")
    assert f"open in a browser: {tmp_path / 'demo' / 'robust' / 'report.html'}" in out
    assert "Ankle boot" in (tmp_path / "demo" / "robust" / "report.html").read_text()
