"""An explanation: every picture and its numbers as files."""

import json

import pytest

from gammacaps.errors import InputError
from gammacaps.reporting.explanation import NAMES, files_of
from gammacaps.reporting.run import explain_run


@pytest.mark.slow
def test_explaining_writes_every_picture_and_its_numbers(run, study, quick, monkeypatch):
    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)  # as it is, to save the time
    folder = explain_run(run, quick)
    names = {path.name for path in folder.iterdir()}
    assert {f"class-{k}.png" for k in range(10)} | {f"hidden-1-{k}.png" for k in range(6)} <= names
    capsules = json.loads((folder / "capsules.json").read_text())
    assert len(capsules["layers"]["class"]) == 10
    assert (capsules["class_penalty"], capsules["hidden_penalty"]) == (1e-4, 1e-5)
    assert set(capsules["layers"]["hidden 1"][0]) >= {"capsule", "activation", "scores", "features", "picture"}
    for name in ("strongest", "activation-map", "class-map", "coupling-map", "confusion", "filters", "reconstruction"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        json.loads((folder / f"{name}.json").read_text())
    assert (folder / "tree-2.svg").read_text().startswith("<svg")
    assert len(json.loads((folder / "routing.json").read_text())) == 3  # iterations
    tree = json.loads((folder / "tree-2.json").read_text())
    assert tree["label"] == 5
    assert tree["clean"]["tau"] == 0.1


@pytest.mark.slow
def test_explaining_again_leaves_nothing_of_before_but_other_files(study, quick, monkeypatch, tmp_path):
    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)
    every = files_of(study)
    assert all(NAMES.fullmatch(name) for name in every)
    fewer = {"tree-1.svg": b"new", "class-0.png": b"new"}
    monkeypatch.setattr("gammacaps.reporting.run.files_of", lambda _: fewer)
    folder = tmp_path / "explain"
    folder.mkdir()
    for name in (*every, "notes.txt", "hidden-2-07.png", "tree-10.json"):
        (folder / name).write_text("old")
    explain_run(tmp_path, quick)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "tree-1.svg": "new",
        "class-0.png": "new",
        "notes.txt": "old",
    }


def test_a_file_in_the_place_of_the_folder_is_named(study, quick, monkeypatch, tmp_path):
    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)
    monkeypatch.setattr("gammacaps.reporting.run.files_of", lambda _: pytest.fail("it worked before it looked"))
    (tmp_path / "explain").write_text("mine")
    with pytest.raises(InputError, match="explain is a file, where a folder is to be written: move it away"):
        explain_run(tmp_path, quick)


def test_an_explanation_that_is_not_done_leaves_no_folder(study, quick, monkeypatch, tmp_path):
    def stopped(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gammacaps.reporting.run.open_study", lambda *_: study)
    monkeypatch.setattr("gammacaps.reporting.run.files_of", stopped)
    with pytest.raises(KeyboardInterrupt):
        explain_run(tmp_path, quick)
    assert list(tmp_path.iterdir()) == []
