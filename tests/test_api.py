"""The verbs as functions, where they differ from what they call."""

import contextlib

import pytest

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
    for module in ("gammacaps.api", "gammacaps.evaluation.several"):
        monkeypatch.setattr(f"{module}.run_folders", touched)
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
