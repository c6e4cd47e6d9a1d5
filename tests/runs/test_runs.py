"""A run's files are read in one place, which checks them; what a run names is imported only where it is trusted."""

import json
import shutil
import sys

import pytest

import gammacaps
from gammacaps.cli import main
from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.models.folder import write_config, write_weights
from gammacaps.names import SHIPPED, shipped_names
from gammacaps.runs.run import Run

TINY = {"filters": 4, "primary_types": 2, "hidden": (3,), "decoder": ()}


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_network_is_a_run(name):
    run = Run(name)
    assert run.folder == SHIPPED / name
    assert run.radius == run.config.train.eps
    assert run.steps == run.config.trained_steps > 1000
    assert run.data_name() == run.config.measured_on or run.config.train.data
    results, audit = run.results(), run.audit()
    assert results == json.loads((SHIPPED / name / "results.json").read_text())
    assert audit == json.loads((SHIPPED / name / "audit.json").read_text())
    assert results["weights"] == audit["weights"]


def test_a_network_that_was_only_saved_says_little(tmp_path):
    gammacaps.save(gammacaps.create("small", **TINY), tmp_path / "saved")
    run = Run(tmp_path / "saved")
    assert (run.radius, run.steps, run.size, run.results(), run.audit()) == (None, None, None, None, None)
    with pytest.raises(InputError, match="does not say what it was trained on"):
        run.data_name()
    assert run.data_name("mnist") == "mnist"


@pytest.mark.parametrize(("name", "value"), [("steps", 0), ("steps", 10**7), ("restarts", 0), ("restarts", 10**7)])
def test_an_attack_with_numbers_that_it_can_t_have_had_is_one_sentence(tmp_path, name, value):
    run = tmp_path / "run"
    shutil.copytree(SHIPPED / "fashion-mini", run)
    results = json.loads((run / "results.json").read_text())
    results["attacks"][0][name] = value
    (run / "results.json").write_text(json.dumps(results))
    with pytest.raises(InputError, match=f"{name} of the attack .* must be from 1 to 1,000,000, not {value}"):
        Run(run).results()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": []}, "A configuration is a table"),
        ({"train": {"attack_steps": 10**15}}, "attack_steps must be at most"),
        ({"train": {"attack_steps": 10**30}}, "a whole number that is too large"),
        ({"train": {"epsilon": 0.1}}, "option of training 'epsilon'"),
        ({"train": 7}, "A configuration is a table"),
        ({"data": []}, "data must be a table"),
        ({"data": {"class_names": "abc"}}, "data.class_names must be a list"),
        ({"data": {"class_names": ["a"]}}, "1 class names, and the network has 10"),
        ({"data": {"train_images": -1}}, "fewer than none"),
        ({"machine": "mine"}, "machine must be a table"),
        ({"machine": {"device_name": []}}, "machine.device_name must be a text"),
        ({"trained_steps": "many"}, "trained_steps must be a whole number"),
        ({"measured_on": 3}, "measured_on must be a text"),
        ({"colour": "red"}, "colour is not known"),
    ],
)
def test_a_broken_config_is_one_sentence(tmp_path, changes, words):
    gammacaps.save(gammacaps.create("small", **TINY), tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match=words) as told:
        Run(tmp_path / "run").checked()
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


MODULE = """
from pathlib import Path
Path("imported").touch()
def data(split):
    from gammacaps.data import load_set
    mini = load_set("fashion-mini", split)
    class Pairs:
        classes = mini.class_names
        def __len__(self): return 40
        def __getitem__(self, i): return mini.images[i], int(mini.labels[i])
    return Pairs()
"""


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A run from someone else, whose config.json names a Dataset in a module beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs.py").write_text(MODULE)
    model = gammacaps.create("small", **TINY)
    (tmp_path / "run").mkdir()
    facts = {"class_names": list(load_set("fashion-mini").class_names)}
    train = {"data": "theirs:data", "steps": 1, "batch": 8, "device": "cpu", "robust": False, "preset": "small"}
    train["model"] = ["filters=4", "primary_types=2", "hidden=[3]", "decoder=[]"]
    write_config(tmp_path / "run", {"model": model_config(model), "train": train, "data": facts})
    yield tmp_path
    sys.modules.pop("theirs", None)


def model_config(model):
    return json.loads(json.dumps(gammacaps.models.to_config(model)))


COMMANDS = [
    ["evaluate", "run"],
    ["audit", "run"],
    ["report", "run"],
    ["explain", "run"],
    ["explore", "run", "--no-browser"],
    ["train", "--resume", "run"],
    ["train", "--config", "run/config.json", "--out", "new"],
    ["train", "--config", "run/config.json", "--out", "data"],  # a value that is also the name of an option
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", ["theirs:data", "os:abort"])
def test_no_command_runs_code_that_a_folder_names(foreign, capsys, arguments, name):
    path = foreign / "run" / "config.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "train": {**stored["train"], "data": name}}))
    if "--resume" not in arguments:  # which needs a run without weights here, as one has that was never saved
        write_weights(foreign / "run", gammacaps.create("small", **TINY).state_dict())
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"names the data {name}, a Dataset whose code would run" in said
    assert said.count("\n") == 1
    assert not (foreign / "imported").exists()
    assert "theirs" not in sys.modules


@pytest.mark.slow
def test_what_the_user_names_or_trusts_is_imported(foreign, capsys):
    quick = ["--attacks", "fgsm", "--limit", "10", "--no-checks", "--device", "cpu"]
    write_weights(foreign / "run", gammacaps.create("small", **TINY).state_dict())
    main(["evaluate", "run", "--trust", *quick])
    assert (foreign / "imported").exists()
    (foreign / "imported").unlink()
    sys.modules.pop("theirs")
    main(["evaluate", "run", "--data", "theirs:data", *quick])
    assert (foreign / "imported").exists()
    main(["train", "--config", "run/config.json", "--trust", "--out", "new"])
    assert (foreign / "new" / "model.safetensors").exists()
    main(["train", "--resume", "new", "--trust", "--steps", "2"])
    assert "Saved in new" in capsys.readouterr().out
