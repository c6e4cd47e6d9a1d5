"""Networks that come with the package: found by name, copied whole, and as good as their cards say."""

import dataclasses
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import gammacaps
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.several import audit_folders, audit_runs
from gammacaps.cli import main
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced_places, evaluate
from gammacaps.evaluation.identity import identity
from gammacaps.explain.kept_inputs import numbers_kept, usual_way
from gammacaps.files import read_json
from gammacaps.models import shipped
from gammacaps.models.shipped import FIGURES, FILES, run_folder
from gammacaps.names import SHIPPED, shipped_names
from gammacaps.reporting.study import ON_CPU
from gammacaps.runs.inputs import INPUTS
from gammacaps.runs.run import Run
from gammacaps.shipping.card import card_text

NAMES = shipped_names()
ALWAYS_AT = 0.3  # measured of all, whatever they were trained at


def test_a_shipped_network_is_loaded_from_the_package_without_a_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = gammacaps.load("fashion-mini")
    assert model(torch.rand(2, 1, 28, 28)).shape == (2, 10)
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_names_no_network_is_one_sentence():
    """As a user's Python sees it, where no types are checked on the way."""
    program = "import gammacaps; gammacaps.load(None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    names = ", ".join(NAMES)
    assert f"InputError: A network is named by its run's folder or as one of {names}, not by None." in done.stderr


def test_help_names_them(capsys):
    main(["--help"])
    assert f"for where a command takes a run: {', '.join(NAMES)}." in capsys.readouterr().out


def used(name, **how):
    with run_folder(name, **how) as folder:
        return folder


def test_a_verb_gets_a_copy_under_runs_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with run_folder("fashion-mini") as folder:
        pass
    assert str(folder) == "runs/fashion-mini"
    assert {p.name for p in folder.iterdir()} == {p.name for p in (SHIPPED / "fashion-mini").iterdir()}
    assert "Copied the network fashion-mini that comes with gammacaps to runs/fashion-mini." in capsys.readouterr().err
    (folder / "results.json").write_text("{}")  # what a verb writes there stays
    assert used("fashion-mini") == folder
    assert capsys.readouterr().err == ""
    assert (folder / "results.json").exists()


def test_a_copy_that_another_process_made_meanwhile_is_left_to_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    new_folder, folder = shipped.new_folder, tmp_path / "runs" / "fashion-mini"

    def late(path):
        shutil.copytree(SHIPPED / "fashion-mini", folder)
        return new_folder(path)

    monkeypatch.setattr(shipped, "new_folder", late)
    with pytest.raises(InputError, match="No"), run_folder("fashion-mini"):
        raise InputError("No.")
    assert tree_of(folder) == tree_of(SHIPPED / "fashion-mini")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("what", ["nothing", "a page", "another copy"])
def test_a_copy_that_was_made_goes_where_it_is_still_as_it_was_made(what, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = shipped.RUNS / "fashion-mini"

    def refused():
        with run_folder("fashion-mini"):
            if what == "a page":
                (folder / "report.html").touch()
            if what == "another copy":
                folder.rename("moved")
                shutil.copytree("moved", folder)
            raise InputError("No.")

    with pytest.raises(InputError, match="No"):
        refused()
    assert folder.exists() == folder.parent.exists() == (what != "nothing")
    assert ("Copied the network" in capsys.readouterr().err) == (what == "a page")


def test_what_the_caller_of_a_measurement_refuses_takes_the_copy_back(tmp_path, monkeypatch, capsys):
    """Such as that the output can't be written, after some figures were given and before the last."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gammacaps.auditing.several.audit_run", lambda *_, **__: {})
    names, config = [Path("fashion-mini")], AuditConfig(eps=(0.1,))

    def refused():
        with audit_folders(names) as folders:
            for _ in audit_runs(folders, config, quiet=True):
                raise InputError("No.")

    with pytest.raises(InputError, match="No"):
        refused()
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""
    with audit_folders(names) as folders:
        next(audit_runs(folders, config, quiet=True))  # and no more
    assert capsys.readouterr().err.count("Copied the network") == 1


def tree_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_existing_folder_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gammacaps.save(gammacaps.create("small", classes=3), tmp_path / "fashion-mini")
    assert str(used("fashion-mini")) == "fashion-mini"
    assert gammacaps.load("fashion-mini").config.classes == 3


def test_another_network_in_the_copy_s_place_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gammacaps.save(gammacaps.create("small"), tmp_path / "runs" / "fashion-mini")
    with pytest.raises(InputError, match="runs/fashion-mini is not the network fashion-mini that comes with"):
        used("fashion-mini")


def test_neither_a_folder_nor_a_shipped_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ask in (used, gammacaps.load):
        with pytest.raises(InputError, match=r"no run folder 'nowhere', and no network of that name .* fashion-mini"):
            ask("nowhere")


@pytest.mark.parametrize(("name", "meant"), [("fashion-minni", "fashion-mini"), ("MNIST", "mnist"), ("runs/mine", "")])
def test_the_nearest_shipped_name_is_told(name, meant):
    with pytest.raises(InputError) as caught:
        gammacaps.load(name)
    assert (f" comes with gammacaps (did you mean '{meant}'?): give" in str(caught.value)) == bool(meant)
    assert ("did you mean" in str(caught.value)) == bool(meant)


def test_a_copy_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InputError, match=r"can't be written \(No space left on device"):
        used("fashion-mini")
    assert list(tmp_path.iterdir()) == []


def test_evaluate_takes_a_shipped_name_and_needs_no_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAMMACAPS_DATA", raising=False)
    main(["evaluate", "fashion-mini", "--attacks", "fgsm", "--limit", "20", "--no-checks", "--device", "cpu"])
    out, err = capsys.readouterr()
    assert err.count("Copied the network fashion-mini that comes with gammacaps to runs/fashion-mini-own.") == 1
    assert "fashion-mini, 20 test images, a network trained for" in out
    assert "FGSM eps" in out
    assert "Written to runs/fashion-mini-own/results.json; those that came with fashion-mini stay as they are." in out
    assert (tmp_path / "runs" / "fashion-mini-own" / "results.json").exists()


@pytest.mark.slow
def test_shipped_figures_stay_whatever_is_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy = used("fashion-mini")
    quick = {"limit": 10, "quiet": True}
    for run in ("fashion-mini", copy):  # by its name, and by its folder
        gammacaps.evaluate(run, attacks="fgsm", checks=False, **quick)
        gammacaps.audit(run, attack_steps=2, **quick)
    figures = [file for file in FIGURES if (SHIPPED / "fashion-mini" / file).exists()]
    assert {"results.json", "audit.json"} <= set(figures)
    for file in figures:
        assert (copy / file).read_bytes() == (SHIPPED / "fashion-mini" / file).read_bytes()
    own = used("fashion-mini", figures=True)
    assert str(own) == "runs/fashion-mini-own"
    assert [read_json(own / file)["data"]["images"] for file in ("results.json", "audit.json")] == [10, 10]
    assert used(own, figures=True) == own  # a network of the user's own by now
    assert used("fashion-mini") == copy
    page = gammacaps.report(own, starts=1, steps=1, capsules=1, trees=1, images=20).read_text()
    assert "Worst case of one attack, eps 0.1" in page
    assert "Accuracy on 10 test images; attacks: fgsm" in page
    assert "the worst case of one attack on 10 test images" in page


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shipped_is_small_and_names_no_machine(name):
    folder = SHIPPED / name
    files = {p.name for p in folder.iterdir()}
    assert set(FILES) <= files <= {*FILES, *FIGURES, INPUTS}
    assert (folder / "model.safetensors").stat().st_size <= (3 if name == "fashion-mini" else 8) * 2**20
    assert sum((folder / file).stat().st_size for file in files - {"model.safetensors"}) < 2**19
    for file in files - {"model.safetensors"}:
        assert not re.search(rb"/(home|root|tmp|work|Users)/", (folder / file).read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_its_capsules_have_their_generated_inputs_with_them(name):
    """Those that the report would make: of these weights, of all hidden and class capsules, in as many steps."""
    run, model = Run(name), gammacaps.load(name)
    made = numbers_kept(run, model, {layer: usual_way(layer, run.radius) for layer in model.layers[1:]})
    assert made is not None
    assert all(number >= least for number, least in zip(made, ON_CPU, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_made_from_the_figures_of_these_very_weights(name):
    """To the bit: of the weights, and of every word of the card."""
    folder, model = SHIPPED / name, gammacaps.load(name)
    files = [folder / file for file in ("config.json", *FIGURES)]
    stored, results, audit, beyond = (read_json(file) if file.exists() else None for file in files)
    measured = [figures["weights"] for figures in (results, audit, beyond) if figures is not None]
    assert measured == [identity(model)] * len(measured)
    assert (folder / "README.md").read_text() == card_text(
        name, stored, results, audit, sum(p.numel() for p in model.parameters()), beyond
    )


@pytest.mark.slow
def test_the_figures_of_all_images_come_out_again():
    """Clean and after one step of an attack, which gives rounding no time to grow: one image in a hundred may turn."""
    told = read_json(SHIPPED / "fashion-mini" / "results.json")
    radii = tuple(row["eps"] for row in told["worst"])
    options = EvaluateConfig(attacks=("fgsm",), eps=radii, checks=False, device="cpu", batch=100)
    found = evaluate(gammacaps.load("fashion-mini"), load_set("fashion-mini"), options)
    moved = sum(
        abs(a - b)
        for row, other in zip(found["confusion"], told["confusion"], strict=True)
        for a, b in zip(row, other, strict=True)
    )
    assert moved <= 4  # an image that turns leaves one cell and comes into another
    turned = found["clean"]["images"] // 100
    rows = [(row["eps"], row["correct"]) for row in told["attacks"] if row["attack"] == "fgsm"]
    assert [row["eps"] for row in found["attacks"]] == [eps for eps, _ in rows]
    for row, (eps, correct) in zip(found["attacks"], rows, strict=True):
        assert abs(row["correct"] - correct) <= turned, eps
    for score in ("T", "D"):
        assert found[score]["mean"] == pytest.approx(told[score]["mean"], abs=1e-4)


# Of a network some images that were drawn from those of its card: so many under one step, so many under PGD-40.
SAMPLES = {"fashion-mini": (100, 60), "mnist": (80, 12), "fashion-mnist": (80, 12)}
SAMPLES |= {"fashion-mnist-0.3": (80, 12), "smallnorb": (80, 12)}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_fair_sample_of_the_images_gives_the_card_s_figures(name, request):
    """As near as chance allows: by three standard deviations of a count, and one image that rounding may turn."""
    stored, told = (read_json(SHIPPED / name / file) for file in ("config.json", "results.json"))
    data_dir = None if stored["measured_on"] == "fashion-mini" else request.getfixturevalue("real_data")
    data = load_set(stored["measured_on"], "test", data_dir=data_dir)
    places = balanced_places(data, told["data"]["images"])
    order = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))
    model, eps = gammacaps.load(name), stored["train"]["eps"]
    measured = sorted(row["eps"] for row in told["worst"])
    for attack, radii, count in zip(("fgsm", "pgd"), (measured, [eps]), SAMPLES[name], strict=True):
        drawn = places[order[:count]]
        sample = dataclasses.replace(data, images=data.images[drawn], labels=data.labels[drawn])
        options = EvaluateConfig(attacks=(attack,), eps=tuple(radii), checks=False, device="cpu", batch=40)
        found = evaluate(model, sample, options)
        rates = {row["eps"]: row["accuracy"] for row in told["attacks"] if row["attack"] == attack}
        pairs = [("clean", found["clean"], told["clean"]["accuracy"])]
        pairs += [(f"{attack} {row['eps']}", row, rates[row["eps"]]) for row in found["attacks"]]
        assert len(pairs) == 1 + len(radii)
        for what, row, rate in pairs:
            chance = math.sqrt(count * rate * (1 - rate))
            assert abs(row["correct"] - count * rate) <= 3 * chance + 1, what
        if attack == "fgsm":
            assert found["T"]["mean"] == pytest.approx(told["T"]["mean"], abs=0.01)
            assert found["D"]["mean"] == pytest.approx(told["D"]["mean"], abs=0.05)


def test_the_card_tells_all_that_one_must_know():
    card = (SHIPPED / "fashion-mini" / "README.md").read_text()
    wanted = (
        "license: apache-2.0",
        "gammacaps train",
        "seed",
        "AutoAttack",
        "worst case",
        "checks passed",
        "## Use and",
    )
    for each in wanted:
        assert each in card
    assert json.loads((SHIPPED / "fashion-mini" / "config.json").read_text())["precision"] in ("float16", "bfloat16")
