"""The verbs as functions, where they differ from what they call."""

import contextlib
import inspect

import pytest
import torch

import gammacaps
from gammacaps.distributed.processes import Processes
from gammacaps.errors import InputError
from gammacaps.models import save


def test_the_first_process_alone_looks_for_the_run_that_is_evaluated(tmp_path, monkeypatch):
    class Second(Processes):
        def first(self, function):
            return (tmp_path,)  # as the first process gave it

    def touched(*_):
        raise AssertionError("Another process than the first touched the run.")

    others = Second(rank=1, count=2)
    monkeypatch.setattr("gammacaps.api.joined", lambda: contextlib.nullcontext(others))
    monkeypatch.setattr("gammacaps.evaluation.several.run_folders", touched)
    seen = []

    def evaluate_run(folder, config, *, quiet, processes):
        seen.append((folder, processes))
        return {"clean": 1}

    monkeypatch.setattr("gammacaps.evaluation.several.evaluate_run", evaluate_run)
    assert gammacaps.evaluate("fashion-mini") == {"clean": 1}
    assert seen == [(tmp_path, others)]


@pytest.mark.parametrize("file", ["audit.json", "audit-eps.png", "audit-tau.png"])
def test_an_audit_is_not_begun_where_a_file_of_it_can_t_be_written(file, tmp_path, monkeypatch):
    def begun(*_, **__):
        raise AssertionError("The audit was begun.")

    save(gammacaps.create("small", filters=8, primary_types=2, hidden=(4,), decoder=()), tmp_path / "run")
    (tmp_path / "run" / file).mkdir()
    for module in ("gammacaps.auditing.run.audit", "gammacaps.auditing.several.audit_run"):
        monkeypatch.setattr(module, begun)
    with pytest.raises(InputError, match=file):
        gammacaps.audit(tmp_path / "run")


@pytest.mark.parametrize(
    ("verb", "given", "options", "words"),
    [
        ("evaluate", 3, {}, "A run is named by its path, not by a int"),
        ("audit", None, {}, "A run is named by its path, not by a NoneType"),
        ("report", [], {}, "A run is named by its path, not by a list"),
        ("train", "fashion-mini", {"out": 3}, "A run's folder is named by its path, not by a int"),
        ("train", 3, {}, "data must be"),
        ("train", "fashion-mini", {"robust": "no"}, "robust must be true or false"),
        ("train", "fashion-mini", {"model": {"hidden": [3]}}, "model"),
        ("evaluate", "fashion-mini", {"checks": 1}, "checks must be true or false"),
    ],
)
def test_what_verbs_can_t_use_is_one_sentence(verb, given, options, words):
    with pytest.raises(InputError, match=words):
        inspect.unwrap(getattr(gammacaps, verb))(given, **options)  # past the types that tests check


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"limit": 5}, "check takes no limit"),
        ({"data": "mnist"}, "check takes no data"),
        (
            {"epsilon": 0.1},
            r"There is no option 'epsilon' \(did you mean 'eps'\?\): use one of ((?!limit|data|device).)*$",
        ),
        ({"labels": torch.zeros(3, dtype=torch.int64)}, "labels"),
        ({"images": torch.zeros(0, 1, 28, 28), "labels": torch.zeros(0, dtype=torch.int64)}, "image"),
        ({"images": "pictures"}, "mages"),
        ({"model": "fashion-mini"}, "A classifier is a network or a function of images, not a str"),
    ],
)
def test_what_check_can_t_use_is_one_sentence(change, words):
    images, labels = gammacaps.load_data("fashion-mini")
    given = {"model": lambda x: x.flatten(1)[:, :10], "images": images[:5], "labels": labels[:5], **change}
    with pytest.raises(InputError, match=words):
        inspect.unwrap(gammacaps.check)(given.pop("model"), given.pop("images"), given.pop("labels"), **given)


def test_check_is_at_one_radius_unless_told():
    images, labels = gammacaps.load_data("fashion-mini")
    figures = gammacaps.check(gammacaps.load("fashion-mini"), images[:5], labels[:5], attacks="fgsm", checks=False)
    assert [row["eps"] for row in figures["attacks"]] == [0.1]
