"""What `gammacaps` shows of itself: its names, each with an example that runs."""

import dataclasses
import doctest
import inspect
import operator
import pydoc
import re
import subprocess
import sys

import pytest
import torch

import gammacaps
from gammacaps.attacks import attack_names, suites
from gammacaps.auditing.config import AuditConfig
from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.reporting.config import ReportConfig
from gammacaps.runs.train_config import TrainConfig

VERBS = {"train", "evaluate", "audit", "report", "check"}


def test_dir_is_the_table_of_contents():
    public = [name for name in dir(gammacaps) if not name.startswith("_")]
    assert public == sorted(gammacaps.__all__)
    wanted = {
        *VERBS,
        "create",
        "load",
        "save",
        "load_data",
        "InputError",
        "Normalized",
        "attacks",
        "explain",
        "metrics",
        "ops",
    }
    assert wanted <= set(public)
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'"):
        _ = gammacaps.nosuch


def test_verbs_are_functions_whatever_was_imported_before():
    import gammacaps.auditing.run
    import gammacaps.cli.verbs
    import gammacaps.reporting.run

    assert all(inspect.isfunction(getattr(gammacaps, verb)) for verb in VERBS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gammacaps", *gammacaps.__all__, "models.CapsuleModel"])
def test_every_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    shown = gammacaps if name == "gammacaps" else operator.attrgetter(name)(gammacaps)
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(shown) or "", {}, name, None, None)
    assert examples.examples, f"{name} has no example"
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    printed: list[str] = []
    results = doctest.DocTestRunner(optionflags=options).run(examples, out=printed.append)
    assert results.failed == 0, "".join(printed)


def test_a_wrong_option_is_told_with_the_nearest_right_one():
    with pytest.raises(InputError, match=r"There is no option 'step' \(did you mean 'steps'\?\): use one of"):
        gammacaps.train("fashion-mini", step=3)
    with pytest.raises(InputError, match=r"There is no option 'attack' \(did you mean 'attacks'\?\)"):
        gammacaps.evaluate("fashion-mini", attack="pgd")


def test_names_are_shown_without_torch():
    program = "import gammacaps, sys; dir(gammacaps); gammacaps.InputError; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize(
    ("verb", "config"),
    [("train", TrainConfig), ("evaluate", EvaluateConfig), ("audit", AuditConfig), ("report", ReportConfig)],
)
def test_help_lists_every_option_with_its_default(verb, config):
    text = " ".join(pydoc.plain(pydoc.render_doc(getattr(gammacaps, verb))).split())
    for field in dataclasses.fields(config):
        if (verb, field.name) != ("train", "data"):  # an argument of its own
            assert f"{field.name}={field.default!r}: " in text
    assert "seed=0: Seed of " in text


def test_the_command_line_s_help_and_python_s_name_every_attack(capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    shown = capsys.readouterr().out, gammacaps.evaluate.__doc__ or ""
    for name in (*attack_names(), *suites()):
        assert all(re.search(rf"\b{name}\b", text) for text in shown), name


MODEL = gammacaps.create("small")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: load_data(3), "A data set is named by a text or a path, not by a int: use one of"),
        (lambda: load_data(None), "not by a NoneType"),
        (lambda: load_data(["mnist"]), "not by a list"),
        (lambda: load_data(b"mnist"), "not by a bytes"),
        (lambda: load_data("mnist", data_dir=3), "data_dir is the path of a folder, not a int"),
        (lambda: save(3, "nowhere"), "save takes a network of gammacaps, not a int"),
        (lambda: save(torch.nn.Linear(2, 2), "nowhere"), "not a Linear: use torch.save"),
        (lambda: save(MODEL, None), "A run's folder is named by its path, not by a NoneType"),
        (lambda: load("fashion-mini", device="gpu"), "There is no device 'gpu': use cpu, cuda"),
        (lambda: load("fashion-mini", device=["cpu"]), "There is no device"),
    ],
)
def test_odd_arguments_are_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


# Past the types that tests check.
load_data, save, load = map(inspect.unwrap, (gammacaps.data.load_set, gammacaps.save, gammacaps.load))
