import contextlib
import dataclasses
import errno
import functools
import io
import json
import os
import shutil
import subprocess
import sys

import pytest

import gammacaps
from gammacaps.auditing.config import AuditConfig
from gammacaps.cli import main
from gammacaps.cli.parse import options_of
from gammacaps.cli.verbs import VERBS
from gammacaps.demo import named_capsules, run_demo
from gammacaps.errors import InputError
from gammacaps.evaluation import surrogate
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.reporting.config import ReportConfig

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
    long = surrogate.train  # of the network to transfer from; a few steps do here
    monkeypatch.setattr(surrogate, "train", lambda c, *to, **how: long(dataclasses.replace(c, steps=3), *to, **how))
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
    before = (run / "model.safetensors").read_bytes()
    assert status("train", "--resume", run, "--json") == 0  # there is nothing left to do
    out, err = capsys.readouterr()
    assert f"{run} is finished (step 5): give more --steps or --minutes to go on" in err
    assert json.loads(out) == {"run": str(run)}
    assert (run / "model.safetensors").read_bytes() == before


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
        (["train", "--resume", "nowhere"], "There is no run folder 'nowhere'"),
        (["train", "--resume", "nowhere", "--lr", "3"], "goes on with the run's own options"),
        (["train", "--resume", "nowhere", "--loss", "own"], "goes on with the run's own options"),  # the default, given
        (["train", "--resume", "nowhere", "--robust"], "goes on with the run's own options"),
        (["train", "--resume", "nowhere", "--out", "RUN"], "goes on with the run's own options"),
        (["evaluate"], "Name the run's folder, such as"),
        (["report"], "Name the run's folder, such as"),
        (["evaluate", "nowhere", "--attacks", "strongest"], "did you mean 'strong'"),
        (["evaluate", "nowhere"], "There is no run folder 'nowhere'"),
        (["data", "mnits"], "did you mean 'mnist'"),
        (["train", "--seed", "99999999999999999999"], "seed must be from 0 to 2147483647"),
        (["evaluate", "fashion-mini", "--seed", "99999999999999999999"], "seed must be from 0 to 2147483647"),
        (["evaluate", "fashion-mini", "--eps", "2"], "eps must be at most 1, the range of a pixel, not 2.0"),
        (["evaluate", "fashion-mini", "--attack-steps", "1000000000000"], "attack_steps must be at most 10,000"),
        (["audit", "fashion-mini", "--eps", "2"], "eps must be at most 1, the range of a pixel, not 2.0"),
        (["demo", "--seed", "-1"], "seed must be from 0 to 2147483647, not -1"),
        (["demo", "--minutes", "nan"], "minutes must be more than 0, not nan"),
        (
            ["train", "--model", "hidden=[100000000]", "--out", "RUN"],
            "1,408,800,290,144 parameters and takes 5,635.2 GB",
        ),
        (["export", "fashion-mini", "--out", "nowhere/x.pt2"], "nowhere can't be written (No such file or directory)"),
        (["bench", "--out", "nowhere/rows.csv"], "nowhere can't be written (No such file or directory)"),
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
        audit=AuditConfig(limit=10, taus=(), attack_steps=1, device="cpu"),
        report=ReportConfig(starts=2, steps=2, images=20, trees=1, device="cpu"),
    )
    monkeypatch.setattr("gammacaps.demo.run_demo", small)
    assert status("demo", "--out", tmp_path / "demo", "--minutes", 0.03) == 0
    out, err = capsys.readouterr()
    assert "right under PGD-40 eps 0.1" in out
    assert "20 test images of clothes" in out
    assert err.index("5/5 Looking into both") < err.index("Inputs that activate the hidden 1 capsules")
    for name in ("robust", "standard"):
        assert (tmp_path / "demo" / name / "results.json").exists()
    assert (tmp_path / "demo" / "attacked.png").read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "demo" / "robust" / "side-by-side.html"
    assert f"open in a browser: {page}" in out
    assert "2 standard, trained on clean images" in page.read_text()
    for place, name in enumerate(("robust", "standard")):  # the page is of the very figures that are printed
        results = json.loads((tmp_path / "demo" / name / "results.json").read_text())
        assert results["data"]["images"] == 20
        row = next(line for line in out.splitlines() if "right under PGD-40 eps 0.1" in line)
        (pgd,) = (each for each in results["attacks"] if each["attack"] == "pgd")
        assert row.split()[-2 + place] == f"{100 * pgd['accuracy']:.1f}%"


def test_the_demo_names_as_many_capsules_as_it_counts():
    names = ["Sandal", "Sneaker", "Bag"]
    sets = [(0, 1), (2,), (0, 1), (2,), (2,), (0,)]
    rows = [{"kind": "gamma-capsule", "classes": own} for own in sets] + [{"kind": "dead", "classes": []}]
    data = {"name": "mine", "images": 60}
    audited = {"class_names": names, "data": data, "layers": [{"capsules": rows}]}
    first, *told = named_capsules(audited).splitlines()
    assert first.startswith("6 of 7 hidden capsules ")
    assert first.endswith(" by an audit of 60 test images, active on:")
    assert told == ["  Bag (3 capsules)", "  Sandal", "  Sandal and Sneaker (2 capsules)"]
    none = {**audited, "layers": [{"capsules": rows[-1:]}]}
    assert named_capsules(none).endswith("are gamma-capsules by an audit of 60 test images.")


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    assert status("train", *TINY, "--no-robust", "--steps", 1, "--out", run) == 0
    return run


def nothing_is_done(*arguments, **keywords):
    raise AssertionError("this is work, and what is wrong could be said before")


@pytest.mark.parametrize(
    ("verb", "name", "make", "words"),
    [
        ("evaluate", "results.json", "folder", "results.json is a folder, where a file is to be written"),
        ("evaluate", "evaluation", "file", "evaluation is a file, where a folder is to be written"),
        ("audit", "audit.json", "folder", "audit.json is a folder, where a file is to be written"),
        ("report", "report.html", "folder", "report.html is a folder, where a file is to be written"),
        ("explain", "explain", "file", "explain is a file, where a folder is to be written"),
    ],
)
def test_what_is_in_the_way_is_said_before_any_work(untrained, tmp_path, monkeypatch, capsys, verb, name, make, words):
    run = tmp_path / "run"
    shutil.copytree(untrained, run)
    if make == "folder":
        (run / name).mkdir()
    else:
        (run / name).touch()
    for place in ("evaluation.run.evaluate", "auditing.run.audit", "reporting.run.open_study"):
        monkeypatch.setattr(f"gammacaps.{place}", nothing_is_done)
    assert status(verb, run) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["evaluate", "audit", "report", "explain"])
def test_a_run_that_can_t_be_written_to_is_said_before_any_work(untrained, monkeypatch, capsys, verb):
    def refused(*arguments, **keywords):  # as on a disk that is read-only, whose rules hold for root too
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("gammacaps.files.tempfile.TemporaryFile", refused)
    for place in ("evaluation.run.evaluate", "auditing.run.audit", "reporting.run.open_study"):
        monkeypatch.setattr(f"gammacaps.{place}", nothing_is_done)
    assert status(verb, untrained) == 2
    assert f"{untrained} can't be written (Read-only file system)" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("verb", [["evaluate", "--no-checks", "--attacks", "noise"], ["audit"], ["report"]])
def test_a_run_that_is_deleted_at_work_is_one_sentence(untrained, tmp_path, monkeypatch, capsys, verb):
    run = tmp_path / "run"
    shutil.copytree(untrained, run)

    def load_and_delete(*arguments, **keywords):
        model = gammacaps.load(*arguments, **keywords)
        shutil.rmtree(run, ignore_errors=True)
        return model

    monkeypatch.setattr("gammacaps.runs.run.load", load_and_delete)
    quick = {"evaluate": ["--limit", 10], "audit": ["--limit", 10, "--attack-steps", 1]}
    less = ["--starts", 1, "--steps", 1, "--images", 10, "--trees", 1]
    assert status(verb[0], run, *verb[1:], *quick.get(verb[0], less)) == 2
    err = capsys.readouterr().err
    assert str(run) in err
    assert "Traceback" not in err


def test_a_working_folder_that_is_gone_is_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for arguments in (["evaluate", "."], ["train"], ["demo"], ["data"]):
        assert status(*arguments) == 2
        assert "The folder that gammacaps was started in is gone" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["file", "file/below", "x" * 300])
def test_a_demo_where_no_folder_can_be_is_one_sentence(tmp_path, capsys, out):
    (tmp_path / "file").write_text("mine")
    assert status("demo", "--out", tmp_path / out) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"gammacaps: {tmp_path / out} can't be written (")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("verb", ["evaluate", "audit", "report", "explain", "export", "data", "train"])
def test_a_path_that_the_system_refuses_is_one_sentence(tmp_path, monkeypatch, capsys, verb):
    monkeypatch.chdir(tmp_path)
    name = "x" * 5000
    arguments = {"export": [name, "--out", "x.pt2"], "train": ["--resume", name]}.get(verb, [name])
    assert status(verb, *arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_memory_that_is_not_enough_is_one_sentence(monkeypatch, capsys):
    def takes_all(*arguments, **keywords):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 400000000000 bytes.")

    monkeypatch.setattr("gammacaps.data.summary.overview", takes_all)
    assert status("data") == 2
    assert "The memory is not enough for this" in capsys.readouterr().err


def test_figures_are_printed_before_a_curve_that_can_t_be_drawn(tmp_path, monkeypatch, capsys):
    def fails(*_):
        raise InputError("No curve.")

    monkeypatch.setattr(
        "gammacaps.evaluation.several.run_folders", lambda *_, **__: contextlib.nullcontext((tmp_path,))
    )
    monkeypatch.setattr("gammacaps.evaluation.several.evaluate_run", lambda *_, **__: {"clean": 1})
    monkeypatch.setattr("gammacaps.evaluation.curve.draw_curves", fails)
    assert status("evaluate", tmp_path, "--json", "--sweep", 0.1) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"clean": 1}
    assert "No curve." in printed.err


def test_a_radius_may_be_written_as_a_fraction(tmp_path):
    def read(verb: str, *arguments: str):
        return options_of(VERBS[verb][0], verb, list(arguments))

    assert read("train", "--eps", "8/255", "--attack-step", "2/255").train.eps == 8 / 255
    assert read("evaluate", "mine", "--eps", "4/255", "0.1").evaluate.eps == (4 / 255, 0.1)
    assert read("evaluate", "mine", "--sweep", "2/255", "8/255").evaluate.sweep == (2 / 255, 8 / 255)
    assert read("audit", "mine", "--eps", "8/255").audit.eps == (8 / 255,)
    assert read("report", "mine", "--eps", "8/255").report.eps == 8 / 255
    assert read("start", "mine", "--eps=8/255").start.eps == 8 / 255
    file = tmp_path / "c.toml"
    file.write_text('eps = "8/255"\nattack_step = 0.01\nepochs = "1/2"\n')
    train = read("train", "--config", str(file)).train
    assert (train.eps, train.attack_step, train.epochs) == (8 / 255, 0.01, 0.5)
    for wrong in ("8/x", "8/0", "0.1"):
        file.write_text(f'eps = "{wrong}"\n')
        with pytest.raises(InputError, match="eps must be a number"):
            read("train", "--config", str(file))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])  # tyro draws a frame, or can't
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train --stpes 3", "Unrecognized options: --stpes, 3 (did you mean --steps?); see gammacaps train --help."),
        ("bench --preset big", "There is no preset 'big': use one of paper, small; see gammacaps bench --help."),
        ("train --preset smal", "There is no preset 'smal' (did you mean 'small'?): use one of paper, small, deep, "),
        ("train --attack-loss marg", "There is no attack loss 'marg' (did you mean 'margin'?): use one of margin, ce"),
        ("reproduce tabel1", "There is no part 'tabel1' (did you mean 'table1'?): use one of table1, table2, "),
        ("evaluat", "There is no command 'evaluat' (did you mean 'evaluate'?): use one of start, train, evaluate, "),
        ("export runs/mine", "Missing from gammacaps export: --out (the file, ending in .onnx or .pt2); see gammacaps"),
        (
            "explain",
            "Missing from gammacaps explain: PATH (the run's folder, or a shipped network's name); see gammacaps",
        ),
        ("export", "Missing from gammacaps export: PATH (the run's folder) and --out (the file, ending in .onnx or"),
        ("train --minutes x", "--minutes takes a number, not 'x'; see gammacaps train --help."),
        ("demo --minutes x", "--minutes takes a number, not 'x'; see gammacaps demo --help."),
        ("train --steps 1.5", "--steps takes a whole number, not '1.5'; see gammacaps train --help."),
        ("evaluate mine --eps a b", "--eps takes numbers, not 'a', 'b'; see gammacaps evaluate --help."),
        ("evaluate mine --sweep a", "--sweep takes numbers, not 'a'; see gammacaps evaluate --help."),
        (
            "audit mine --eps 0.1,0.2",
            "--eps takes numbers, not '0.1,0.2': separate them by spaces, as in --eps 0.1 0.2; see gammacaps audit",
        ),
        ("start mine --eps 8/0", "--eps takes a number, not '8/0'; see gammacaps start --help."),
        ("train --eps eight/255", "--eps takes a number, not 'eight/255'; see gammacaps train --help."),
        ("evaluate mine --sweep 0.1 x/255", "--sweep takes numbers, not '0.1', 'x/255'; see gammacaps evaluate"),
        ("report mine --eps 256/255", "eps must be at most 1, the range of a pixel, not 1.003"),
        ("demo --minutes 0", "minutes must be more than 0, not 0.0."),
        ("train --steps", "Missing value for argument '--steps': expected 1 values; see gammacaps train --help."),
    ],
)
def test_an_option_that_is_wrong_is_one_sentence(arguments, words, encoding, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    monkeypatch.setenv("COLUMNS", "50")  # a narrow terminal, over whose lines tyro spreads its words
    with pytest.raises(SystemExit) as end:
        main(arguments.split())
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"gammacaps: {words}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("given", "kept"), [(None, "passive"), ("active", "active")])
def test_threads_sleep_while_they_wait_unless_the_user_says_otherwise(given, kept):
    """Set before torch is imported, which reads it."""
    code = (
        "import os, sys; from gammacaps.cli import main; main(['--version']); "
        "assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {} if given is None else {"OMP_WAIT_POLICY": given}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == kept
