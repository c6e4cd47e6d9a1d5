"""`gammacaps start`: two networks and a page from a folder of pictures, which it only reads."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from drawn import stripes

from gammacaps.auditing.config import AuditConfig
from gammacaps.cli import main
from gammacaps.data import open_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.reporting.config import ReportConfig
from gammacaps.runs.run import Run
from gammacaps.start import output, plan, run
from gammacaps.start.config import StartConfig
from gammacaps.start.output import FORMAT, State, check_place, fingerprint
from gammacaps.start.plan import Plan, choose, make_plan, training_config
from gammacaps.training import loop

QUICK = {
    "evaluation": EvaluateConfig(attacks=("fgsm",), limit=4, checks=False),
    "audit": AuditConfig(limit=4, attack_steps=1, taus=(0.5,)),
    "report": ReportConfig(starts=1, steps=1, images=4, trees=1, capsules=2),
}
CPU = torch.device("cpu")


@pytest.fixture
def slow_steps(monkeypatch):
    """A step is said to take two seconds, so that the minutes are steps: 0.2 of them are 3."""
    monkeypatch.setattr(plan, "seconds_a_step", lambda *given: 2.0)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("colour", [False, True], ids=["two grey classes", "three in colour"])
def test_from_pictures_to_a_page(tmp_path, monkeypatch, capsys, slow_steps, colour):
    monkeypatch.chdir(tmp_path)
    classes = ("across", "down", "filled") if colour else ("across", "down")
    folder = stripes(tmp_path / "bars", classes, colour=colour)
    (folder / "down" / "000.png").write_text("no picture")
    before = tree(folder)
    words = run.start(Path("bars"), StartConfig(minutes=0.2, device="cpu"), **QUICK)
    err = capsys.readouterr().err
    assert tree(folder) == before  # the pictures are only read
    out = tmp_path / "runs" / "bars-start"
    assert "1 file is left out (see pictures.txt)" in err
    assert "bars/down/000.png" in (out / "pictures.txt").read_text()
    assert "Network: small (made for a CPU). Attack: eps 8/255" in err
    assert "3 steps for each network: about 6 s on clean pictures and 6 s under attack" in err
    assert "3 steps are few" in err
    assert err.index("3 steps for each") < err.index("3/5 Training")  # told before
    assert Run(out / "robust").config.train.robust
    assert not Run(out / "clean").config.train.robust
    assert [Run(out / name).steps for name in ("clean", "robust")] == [3, 3]
    assert len(open_set(out / "data", "train").images) == len(classes) * 12 - 1 - len(open_set(out / "data").images)
    assert open_set(out / "data").images.shape[1:] == ((3 if colour else 1), 12, 14)
    assert words.count("test pictures correctly") == 2
    assert "In brackets: the 95% interval." in words
    page = out / "robust" / "side-by-side.html"
    assert f"Both side by side, to open in a browser: {page.relative_to(tmp_path)}" in words
    assert "across" in page.read_text()
    assert "<title>Networks for bars, side by side" in page.read_text()  # not for a folder of our own
    assert "can&#x27;t be told apart with" in page.read_text()
    assert "can't be told apart with" in words
    # Again: nothing is made anew, and it says the same.
    made = tree(out)
    again = run.start(Path("bars"), StartConfig(minutes=0.2, device="cpu"), **QUICK)
    assert tree(out) == made
    assert again.splitlines()[:3] == words.splitlines()[:3]
    assert "Going on in" in capsys.readouterr().err


KILLED = """
import os, signal, sys
from pathlib import Path
from gammacaps.start import plan, run
from gammacaps.start.config import StartConfig
from gammacaps.training import watch
plan.seconds_a_step = lambda *given: 0.5
plan.checkpoint_every = lambda *given: 5
after_step = watch.Checkpoints.after_step
def killed(self, taken):
    after_step(self, taken)
    if taken.config.robust and taken.learner.step == 7:
        os.kill(os.getpid(), signal.SIGKILL)
watch.Checkpoints.after_step = killed
run.start(Path("bars"), StartConfig(minutes=0.2, device="cpu"))
"""


@pytest.mark.slow
def test_a_start_that_was_killed_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stripes(tmp_path / "bars")
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    out = tmp_path / "runs" / "bars-start"
    clean = tree(out / "clean")
    assert Run(out / "clean").steps == 12
    monkeypatch.setattr(plan, "make_plan", None)  # it goes on by the plan that it was begun with
    monkeypatch.setattr(run, "look", None)
    taken = []
    take_step = loop.take_step
    monkeypatch.setattr(loop, "take_step", lambda *given: taken.append(given[1].step) or take_step(*given))
    run.start(Path("bars"), StartConfig(minutes=0.2, device="cpu"), **QUICK)
    assert taken == [5, 6, 7, 8, 9, 10, 11]  # from the last checkpoint of the second network
    steps = [json.loads(line)["step"] for line in (out / "robust" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [10, 12]
    assert tree(out / "clean").items() >= clean.items()  # it was not trained again
    assert (out / "robust" / "side-by-side.html").exists()


def test_the_output_folder_is_its_own_or_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = stripes(tmp_path / "bars")
    before = tree(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    for out in (folder, folder / "new", folder / "down", tmp_path, Path("bars"), Path("mine/../bars/x")):
        with pytest.raises(InputError, match="which is only read: choose one beside it with --out"):
            run.start(Path("bars"), StartConfig(), out)
    with pytest.raises(InputError, match="mine holds something that no start has made: choose another folder"):
        run.start(Path("bars"), StartConfig(), mine)
    with pytest.raises(InputError, match="is no folder: choose another place"):
        run.start(Path("bars"), StartConfig(), mine / "thesis.txt")
    assert tree(tmp_path) == {**before, "mine/thesis.txt": b"years of work"}
    (mine / "start.json").write_text('{"some": "other program"}')
    with pytest.raises(InputError, match=r"start.json is not of a start \("):
        run.start(Path("bars"), StartConfig(), mine)
    check_place(folder, tmp_path / "new")  # one that is not there yet may be made


def test_a_start_that_another_has_overtaken_leaves_its_folder_whole(tmp_path, monkeypatch):
    folder, out, locked = stripes(tmp_path / "bars"), tmp_path / "new" / "out", output.locked
    with contextlib.ExitStack() as other:

        def late(path):
            monkeypatch.setattr(output, "locked", locked)
            other.enter_context(output.taken(folder, out, StartConfig()))  # since it sees the folder that we made
            return locked(path)

        monkeypatch.setattr(output, "locked", late)
        with pytest.raises(InputError, match="Another training is at work"):
            run.start(folder, StartConfig(), out)
        assert list(tree(out)) == ["start.json"]


def test_a_start_that_refuses_removes_what_it_made_alone(tmp_path):
    folder, out = stripes(tmp_path / "bars"), tmp_path / "new" / "out"

    def refused(moved):
        with output.taken(folder, out, StartConfig()):
            assert out.exists()
            if moved:  # and another start has come in its place
                out.rename(tmp_path / "moved")
                out.mkdir()
                output.write_state(out, State(FORMAT, "", "", StartConfig()))
            raise InputError("No.")

    for moved in (False, True):
        with pytest.raises(InputError, match="No"):
            refused(moved)
        assert out.exists() == out.parent.exists() == moved


def test_other_options_or_pictures_are_refused_and_changed_ones_said(tmp_path, monkeypatch, capsys):
    folder, other = stripes(tmp_path / "bars"), stripes(tmp_path / "others")
    out = tmp_path / "out"

    def stopped(*given, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "make_plan", stopped)
    with pytest.raises(KeyboardInterrupt, match="The same command goes on where it was"):
        run.start(folder, StartConfig(device="cpu"), out)
    with pytest.raises(InputError, match=r"was begun with minutes 5.0, not 7.0: give the same options"):
        run.start(folder, StartConfig(minutes=7.0, device="cpu"), out)
    with pytest.raises(InputError, match=r"was begun with the pictures in .*bars: choose another folder"):
        run.start(other, StartConfig(device="cpu"), out)
    capsys.readouterr()
    known = fingerprint(folder)
    (folder / "down" / "000.png").write_text("changed")
    assert fingerprint(folder) != known
    with pytest.raises(KeyboardInterrupt):
        run.start(folder, StartConfig(device="cpu"), out)
    assert "has changed since" in capsys.readouterr().err


def test_network_and_radius_are_chosen_by_machine_and_pictures():
    drawings, photos = torch.zeros(4, 1, 28, 28), torch.full((4, 3, 96, 96), 0.5)
    gpu = torch.device("cuda")
    assert (choose(StartConfig(), CPU, drawings).preset, choose(StartConfig(), CPU, drawings).eps) == ("small", 0.1)
    assert choose(StartConfig(), gpu, drawings).preset == "deep"
    assert (choose(StartConfig(), gpu, photos).preset, choose(StartConfig(), gpu, photos).eps) == ("residual", 8 / 255)
    asked = choose(StartConfig(preset="deep", eps=0.05), CPU, photos)
    assert (asked.preset, asked.eps, asked.why_eps) == ("deep", 0.05, "as you asked")


def test_steps_fit_the_minutes_and_are_never_more_than_enough(tmp_path, monkeypatch):
    data = open_set("fashion-mini", "train")
    times = {False: 0.1, True: 0.3}
    monkeypatch.setattr(plan, "seconds_a_step", lambda config, *given: times[config.robust])
    choice = choose(StartConfig(), CPU, data.images)
    made = make_plan(StartConfig(minutes=5), data, "fashion-mini", choice, CPU)
    assert (made.steps, made.notes) == (750, ())
    assert (made.clean_seconds, made.robust_seconds) == (pytest.approx(75), pytest.approx(225))
    assert make_plan(StartConfig(minutes=500), data, "fashion-mini", choice, CPU).steps == 100 * (2000 // 64)
    for minutes, more in ((1, 2), (1.9, 2), (0.5, 2)):  # 300 steps take 2 minutes
        (note,) = make_plan(StartConfig(minutes=minutes), data, "fashion-mini", choice, CPU).notes
        assert f"give --minutes {more} or more" in note
    times = {False: 0.1, True: 0.11}
    (note,) = make_plan(StartConfig(minutes=1), data, "fashion-mini", choice, CPU).notes
    assert "give --minutes 2 or more" in note  # 1.05 are needed: rounded up, or it would advise what was given
    config = training_config(StartConfig(), "fashion-mini", made, CPU, robust=True)
    assert config.falls_short() == ""
    assert config.minutes == pytest.approx(1.5 * 225 / 60)  # the clock ends what takes far longer than estimated
    assert config.checkpoint_every == 33


@pytest.mark.slow
def test_the_time_of_a_step_is_that_of_real_steps():
    config = training_config(StartConfig(), "fashion-mini", Plan("small", 0.1, 1, 1.0, 1.0), CPU, robust=True)
    seconds = plan.seconds_a_step(config, open_set("fashion-mini", "train"), CPU)
    assert 0.001 < seconds < 60


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "There is no folder of pictures nowhere: give one"),
        (["bars", "--minutes", "0"], "minutes must be more than 0"),
        (["bars", "--eps", "8"], "if you mean 8/255"),
        (["bars", "--size", "4"], "size must be at least 8"),
        ([], "Missing from gammacaps start"),
    ],
)
def test_what_can_t_be_used_is_one_sentence(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    stripes(tmp_path / "bars")
    with pytest.raises(SystemExit) as end:
        main(["start", *arguments])
    assert end.value.code == 2
    assert words in capsys.readouterr().err
