"""A reproduction of a tiny plan from end to end; interrupted, it goes on, and nothing is trained or measured twice."""

import dataclasses
import fcntl
import json
import re
import shutil

import pytest
from made_up import bits, record, share

from gammacaps.attacks import attack_names
from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.identity import identity
from gammacaps.models import load
from gammacaps.paper import measure, run
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.measure import suite_of
from gammacaps.paper.plan import Planned
from gammacaps.paper.record import path_of, read_records, write_record
from gammacaps.runs.train_config import TrainConfig

TINY = {"data": "fashion-mini", "device": "cpu", "batch": 16, "attack_steps": 1, "steps": 4, "log_every": 1}
GAMMA = TrainConfig(model=("filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]"), **TINY)
CNN = TrainConfig(preset="cnn", model=("filters=[4, 4]", "width=8"), **TINY)
TRAINED = json.loads(json.dumps(dataclasses.asdict(CNN)))  # as a record tells it
SDA, OTHER = "fashion-mnist-sda-long-0", "fashion-mnist-cnn-robust-0"
PLAN = [
    Planned(SDA, "fashion-mnist", "sda", "long", GAMMA, (2, 4), worst=((0.3, 20),), generate=True),
    Planned(OTHER, "fashion-mnist", "cnn", "robust", CNN, (4,), worst=((0.3, 20),)),
]


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "chosen", lambda options, parts: PLAN)
    for name, less in (("QUICK_INPUTS", (2, 3)), ("QUICK_SUITE", ("noise",)), ("MAP_IMAGES", 100)):
        monkeypatch.setattr(measure, name, less)
    places = {"results": tmp_path / "reproduction", "work": tmp_path / "runs"}
    return ReproduceConfig(quick=True, evaluate_images=20, device="cpu", **places)


@pytest.fixture
def done(monkeypatch):
    """What was trained, and what was measured at which step."""
    calls = []

    def noted(name, kept):
        def call(*args, **keywords):
            folder = args[1] if name == "train" else args[0]
            calls.append((name, folder.name, keywords.get("until")))
            return kept(*args, **keywords)

        return call

    for name in ("train", "resume", "measure", "attack_strongly"):
        monkeypatch.setattr(run, name, noted(name, getattr(run, name)))
    return calls


@pytest.mark.slow
def test_all_of_it_in_small(options, done, tmp_path, capsys):
    run.reproduce(("all",), options)
    assert done == [
        ("train", SDA, 2),
        ("measure", SDA, None),
        ("resume", SDA, 4),
        ("measure", SDA, None),
        ("attack_strongly", SDA, None),
        ("train", OTHER, 4),
        ("measure", OTHER, None),
        ("attack_strongly", OTHER, None),
    ]
    page = (tmp_path / "reproduction.md").read_text()
    details = (tmp_path / "reproduction" / "details.md").read_text()
    assert "This is the cut-down version" in page
    assert "This is the cut-down version" in (tmp_path / "reproduction.html").read_text()
    assert "| fashionMNIST | SDA | 4 | 0 | under attack, eps 0.3 | 71.63 |" in details
    assert "Ours after 2 steps" in details
    found = read_records(tmp_path / "reproduction")
    last = found[SDA]
    assert last.earlier[0].steps == 2
    assert last.arrays["generated_hidden"].shape == (6, 1, 28, 28)
    assert [row["eps"] for row in last.figures["authors"]] == [0.1, 0.3, 0.5]
    assert {row["loss"] for row in last.figures["authors"]} == {"ce"}
    assert "authors" not in found[OTHER].figures  # a CNN has no lengths
    for one in found.values():
        for attack, eps, told in (
            ("clean", None, one.figures["results"]["clean"]),
            ("pgd", 0.3, one.accuracy("pgd", 0.3)),
            ("worst", 0.3, one.worst(0.3)),
        ):
            assert one.bits(attack, eps).right.sum() == told["correct"]
        assert {key.split(":")[2] for key in one.arrays if ":suite-" in key} == {
            "suite-clean",
            *(f"suite-{name}@0.3" for name in ("noise", "fgsm", "pgd", "worst")),
        }
        assert sum(one.worst(0.3)["classes"]) == one.worst(0.3)["images"] == 20
    sizes = [path.stat().st_size for path in (tmp_path / "reproduction").iterdir() if path.suffix in (".json", ".npz")]
    assert max(sizes) < 200_000
    text = "".join(path.read_text() for path in (tmp_path / "reproduction").glob("*.json"))
    assert str(tmp_path) not in text  # no folder of this machine
    # The heavy folders may go: the figures are enough.
    shutil.rmtree(tmp_path / "runs")
    done.clear()
    run.reproduce(("all",), options)
    assert done == []
    assert page == (tmp_path / "reproduction.md").read_text()
    assert "1/2 fashion-mnist-sda-long-0: done before." in capsys.readouterr().err


@pytest.fixture
def made_up(monkeypatch, done):
    """Measuring that takes no time, with what is to happen before it, and no page."""
    figures = {name: record(name).figures for name in (SDA, OTHER)}
    before = []

    def noted(name, folder):
        done.append((name, folder.name, None))
        for call in before:
            call(name)

    def measured(folder, planned, options):
        noted("measure", folder)
        results = {**figures[planned.name]["results"], "weights": identity(load(folder))}
        told = {"results": results, "worst": [], "checks": [], "skipped": []}
        return told, bits(told)

    def attacked(folder, planned, options, eps, images):
        noted("attack_strongly", folder)
        suite = list(EvaluateConfig(attacks=suite_of(options)).named_attacks())
        won = {identity(load(folder)): {"broke": 12, "alone": 12}}  # so that one sees which weights were attacked
        row = {"eps": eps, **share(0.4, 20), "complete": True, "won": won, "classes": [2] * 10}
        row |= {"attacks": suite[1:], "suite": suite}
        return {"worst": [row], "checks": [], "skipped": []}, {}

    monkeypatch.setattr(run, "measure", measured)
    monkeypatch.setattr(run, "attack_strongly", attacked)
    monkeypatch.setattr(run, "write_page", lambda *_, **__: ())
    return before


@pytest.mark.slow
@pytest.mark.parametrize("killed", [("measure", 1), ("measure", 2), ("attack_strongly", 1)])
def test_a_killed_one_goes_on(options, done, made_up, killed):
    """Killed while it measures: what was trained and measured stays."""

    def deadly(name):
        if (name, sum(call[0] == name for call in done)) == killed:
            made_up.clear()
            raise KeyboardInterrupt

    made_up.append(deadly)
    with pytest.raises(KeyboardInterrupt):
        run.reproduce(("all",), options)
    run.reproduce(("all",), options)
    trained = [call for call in done if call[0] in ("train", "resume")]
    assert trained == [("train", SDA, 2), ("resume", SDA, 4), ("train", OTHER, 4)]
    for name in ("measure", "attack_strongly"):  # only what was killed is done once more
        wanted = {"measure": 3, "attack_strongly": 2}[name] + (name == killed[0])
        assert sum(call[0] == name for call in done) == wanted


@pytest.mark.slow
def test_strong_attacks_are_added_only_to_the_figures_of_the_very_weights(options, done, made_up, tmp_path):
    run.reproduce(("all",), options)
    path, folder = options.results_folder / f"{SDA}.json", options.work_folder / SDA
    whole = json.loads(path.read_text())
    assert [*whole["worst"][0]["won"]] == [whole["results"]["weights"]]

    def again(**changes):
        path.write_text(json.dumps({**whole, "worst": [], **changes}))
        done.clear()
        run.reproduce(("all",), options)
        return [call[0] for call in done], json.loads(path.read_text())["worst"]

    assert again() == (["attack_strongly"], whole["worst"])
    # A worst case over fewer attacks is made up for; one over more is left.
    fewer, more = ({**whole["worst"][0], "suite": suite} for suite in (["pgd"], [*whole["worst"][0]["suite"], "fab-t"]))
    assert again(worst=[fewer]) == (["attack_strongly"], whole["worst"])
    assert again(worst=[more]) == ([], [more])
    # Nor is a finished run trained again for an earlier moment whose figures are gone.
    early = options.results_folder / f"{SDA}.at-2.json"
    early.rename(tmp_path / "kept.json")
    assert again() == (["attack_strongly"], whole["worst"])
    (tmp_path / "kept.json").rename(early)
    # Trained to the end, but elsewhere: other weights.
    assert again(results={**whole["results"], "weights": "another machine's"}) == ([], [])
    # The same training half done here, the figures from elsewhere.
    shutil.rmtree(folder)
    run.train(PLAN[0].config, folder, until=2)
    assert again() == ([], [])
    # Half done, whatever its weights are.
    assert again(results={**whole["results"], "weights": identity(load(folder))}) == ([], [])
    run.make(PLAN[0], options)
    assert json.loads(path.read_text())["worst"] == []
    # Trained to its end, it is the run that was measured.
    run.resume(folder, until=4, device="cpu", data_dir=None)
    assert again() == (["attack_strongly"], whole["worst"])
    (folder / "model.safetensors").write_bytes(b"broken")
    assert again() == ([], [])


def test_a_suite_is_checked_at_once_and_used_by_the_cut_down_version_too():
    with pytest.raises(InputError, match="attack or suite"):
        ReproduceConfig(quick=True, suite=("bogus",))
    named = EvaluateConfig(attacks=suite_of(ReproduceConfig(quick=True, suite=("square",)))).named_attacks()
    assert named == ("fgsm", "pgd", "square")
    assert len(EvaluateConfig(attacks=suite_of(ReproduceConfig(quick=True))).named_attacks()) == 4
    assert EvaluateConfig(attacks=suite_of(ReproduceConfig())).named_attacks() == attack_names()


def test_an_interruption_names_the_run_and_the_way_on(options, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt("go on with: gammacaps train --resume")

    monkeypatch.setattr(run, "make", stopped)
    with pytest.raises(KeyboardInterrupt, match=f"^Stopped at {SDA}. What was made is kept: the same command goes on"):
        run.reproduce(("all",), options)


@pytest.mark.slow
def test_named_runs_tell_their_figures_and_the_page_s_command_of_the_same_folder(options, made_up, capsys):
    run.reproduce(("all",), dataclasses.replace(options, runs=(SDA,)))
    told = capsys.readouterr().out
    assert told.startswith(f"{SDA}, ")
    assert " steps: clean 90.0% of 10,000; PGD 70.0% at eps 0.1, 50.0% at eps 0.3, 10.0% at eps 0.5; " in told
    assert "; T 0.50; D 0.40\n" in told
    run.reproduce(("all",), dataclasses.replace(options, runs=(OTHER,)))
    assert "; worst case 40.0% at eps 0.3" in capsys.readouterr().out
    assert f"gammacaps reproduce --page --quick --results {options.results}\n" in told


def test_runs_of_another_length_are_made_anew(options):
    folder = options.results_folder
    folder.mkdir()
    figures = {**record(OTHER).figures, "train": TRAINED, "steps": 4, "total": 4}
    write_record(path_of(folder, OTHER), figures, bits(figures))
    assert run.finished(PLAN[1], options)
    write_record(path_of(folder, OTHER), figures | {"steps": 3, "total": 3}, bits(figures))
    assert not run.finished(PLAN[1], options)


def test_a_record_without_bits_is_read_and_made_anew(options):
    folder = options.results_folder
    folder.mkdir()
    figures = {**record(OTHER).figures, "train": TRAINED, "steps": 4, "total": 4}
    write_record(path_of(folder, OTHER), figures, {})
    assert read_records(folder)[OTHER].bits("clean") is None
    assert not run.finished(PLAN[1], options)


@pytest.mark.slow
def test_a_run_waits_for_what_it_needs(options, done, made_up, monkeypatch, capsys):
    waiting = dataclasses.replace(PLAN[1], needs=(SDA,))
    monkeypatch.setattr(run, "chosen", lambda options, parts: [waiting])
    monkeypatch.setattr(run, "plan", lambda options: {OTHER: waiting})
    run.reproduce(("all",), options)
    assert done == []
    assert f"1/1 {OTHER}: waits for {SDA}." in capsys.readouterr().err
    monkeypatch.setattr(run, "plan", lambda options: {OTHER: PLAN[1]})
    run.reproduce(("all",), options)
    assert {call[1] for call in done} == {OTHER}


def test_a_run_that_lacks_a_radius_of_the_tables_is_made_anew(options):
    folder = options.results_folder
    folder.mkdir()
    figures = {**record(OTHER).figures, "train": TRAINED, "total": 4, "steps": 4}
    write_record(path_of(folder, OTHER), figures, bits(figures))
    assert run.finished(PLAN[1], options)
    assert run.measured(PLAN[1], options, 4)
    attacks = [row for row in figures["results"]["attacks"] if row["eps"] != 0.5]
    write_record(
        path_of(folder, OTHER), {**figures, "results": {**figures["results"], "attacks": attacks}}, bits(figures)
    )
    assert not run.finished(PLAN[1], options)
    assert not run.measured(PLAN[1], options, 4)


def test_figures_of_another_training_are_not_taken_for_the_planned_one(options):
    folder = options.results_folder
    folder.mkdir()
    figures = {**record(OTHER).figures, "train": {**TRAINED, "lr": 0.5}, "total": 4}
    write_record(path_of(folder, OTHER), figures, {})
    assert not run.finished(PLAN[1], options)
    assert not run.measured(PLAN[1], options, 4)


@pytest.mark.slow
def test_a_run_that_another_process_is_at_is_left_to_it(options, done, made_up, capsys):
    options.work_folder.mkdir()
    with (options.work_folder / f"{SDA}.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        run.reproduce(("all",), options)
    assert {call[1] for call in done} == {OTHER}
    assert not (options.work_folder / SDA).exists()
    assert f"1/2 {SDA}: left to the process that is at it." in capsys.readouterr().err
    done.clear()
    run.reproduce(("all",), options)  # the other process is gone
    assert {call[1] for call in done} == {SDA}
    assert f"2/2 {OTHER}: done before." in capsys.readouterr().err


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["reproduce", "confusion", "--dry-run"])
    assert "2 runs, 2 left: " in capsys.readouterr().out
    main(["reproduce", "--dry-run", "--share", "2/5"])
    assert re.search(r"\n1[5-9] runs, ", capsys.readouterr().out)
    main(["reproduce", "--quick", "--dry-run"])
    assert "about 10 minutes on 2 cores" in capsys.readouterr().out
    for arguments, words in (
        (["--runs", "mnist"], "no run of the reproduction 'mnist'"),
        (["table9"], ""),
        (["--share", "7/5"], "share must be a part such as 2/5"),
        (["--page"], "There are no figures in docs/reproduction yet"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["reproduce", *arguments])
        assert words in capsys.readouterr().err
