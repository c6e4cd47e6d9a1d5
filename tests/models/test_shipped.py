"""Networks that come with the package: found by name, copied whole, and as good as their cards say."""

import json
import re
import subprocess
import sys

import pytest
import torch

import gammacaps
from gammacaps.cli import main
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import evaluate
from gammacaps.evaluation.interval import wilson
from gammacaps.files import read_json
from gammacaps.models.shipped import FIGURES, FILES, run_folder
from gammacaps.names import SHIPPED, shipped_names

NAMES = shipped_names()
IMAGES = 200
ALWAYS_AT = 0.3  # measured of all, whatever they were trained at


def test_a_shipped_network_is_loaded_from_the_package_without_a_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = gammacaps.load("fashion-mini")
    assert model(torch.rand(2, 1, 28, 28)).shape == (2, 10)
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert list(tmp_path.iterdir()) == []


def test_what_names_no_network_is_one_sentence():
    """As a user's Python sees it, where no types are checked on the way."""
    program = "import gammacaps; gammacaps.load(None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    names = ", ".join(NAMES)
    assert f"InputError: A network is named by its run's folder or as one of {names}, not by None." in done.stderr


def test_help_names_them(capsys):
    main(["--help"])
    assert f"for where a command takes a run: {', '.join(NAMES)}." in capsys.readouterr().out


def test_a_verb_gets_a_copy_under_runs_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = run_folder("fashion-mini")
    assert str(folder) == "runs/fashion-mini"
    assert {p.name for p in folder.iterdir()} == {p.name for p in (SHIPPED / "fashion-mini").iterdir()}
    assert "Copied the network fashion-mini that comes with gammacaps to runs/fashion-mini." in capsys.readouterr().err
    (folder / "results.json").write_text("{}")  # what a verb writes there stays
    assert run_folder("fashion-mini") == folder
    assert capsys.readouterr().err == ""
    assert (folder / "results.json").exists()


def test_an_existing_folder_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gammacaps.save(gammacaps.create("small", classes=3), tmp_path / "fashion-mini")
    assert str(run_folder("fashion-mini")) == "fashion-mini"
    assert gammacaps.load("fashion-mini").config.classes == 3


def test_another_network_in_the_copy_s_place_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gammacaps.save(gammacaps.create("small"), tmp_path / "runs" / "fashion-mini")
    with pytest.raises(InputError, match="runs/fashion-mini is not the network fashion-mini that comes with"):
        run_folder("fashion-mini")


def test_neither_a_folder_nor_a_shipped_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ask in (run_folder, gammacaps.load):
        with pytest.raises(InputError, match=r"no run's folder nowhere, and no network of that name .* fashion-mini"):
            ask("nowhere")


def test_a_copy_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InputError, match=r"can't be written \(No space left on device"):
        run_folder("fashion-mini")
    assert list((tmp_path / "runs").iterdir()) == []


def test_evaluate_takes_a_shipped_name_and_needs_no_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAMMACAPS_DATA", raising=False)
    main(["evaluate", "fashion-mini", "--attacks", "fgsm", "--limit", "20", "--no-checks", "--device", "cpu"])
    out = capsys.readouterr().out
    assert "fashion-mini, 20 test images, a network trained for" in out
    assert "FGSM eps" in out
    assert (tmp_path / "runs" / "fashion-mini" / "results.json").exists()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shipped_is_small_and_names_no_machine(name):
    folder = SHIPPED / name
    files = {p.name for p in folder.iterdir()}
    assert set(FILES) <= files <= {*FILES, *FIGURES}
    assert (folder / "model.safetensors").stat().st_size <= (3 if name == "fashion-mini" else 16) * 2**20
    for file in files - {"model.safetensors"}:
        assert not re.search(r"/(home|root|tmp|work|Users)/", (folder / file).read_text())


@pytest.mark.parametrize("name", NAMES)
def test_the_card_s_figures_are_what_the_weights_give(name, request):
    stored = read_json(SHIPPED / name / "config.json")
    data_dir = None if stored["measured_on"] == "fashion-mini" else request.getfixturevalue("real_data")
    data = load_set(stored["measured_on"], "test", data_dir=data_dir)
    card = (SHIPPED / name / "README.md").read_text()
    radii = sorted({stored["train"]["eps"], ALWAYS_AT})
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in card.splitlines() if line.startswith("| ")]
    columns = {cell: place for place, cell in enumerate(table[0])}
    rows = {row[0]: row for row in table}
    model = gammacaps.load(name)
    options = EvaluateConfig(attacks=("pgd",), eps=tuple(radii), checks=False, device="cpu", limit=IMAGES)
    found = evaluate(model, data, options)
    assert [row["eps"] for row in found["attacks"]] == radii
    for title, eps, row in [("clean", radii[0], found["clean"]), *(("PGD-40", r["eps"], r) for r in found["attacks"])]:
        low, high = (float(number) / 100 for number in re.findall(r"[\d.]+", rows[title][columns[f"eps {eps:g}"]])[1:])
        mine = wilson(row["correct"], row["images"])
        assert mine[0] <= high, (title, eps)
        assert mine[1] >= low, (title, eps)
    for title, score, tolerance in (("T (1: a tree)", found["T"], 0.01), ("D (reacts to input)", found["D"], 0.05)):
        told = float(rows[title][1])
        assert abs(score["mean"] - told) < tolerance, title


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
    for words in wanted:
        assert words in card
    assert json.loads((SHIPPED / "fashion-mini" / "config.json").read_text())["precision"] in ("float16", "bfloat16")
