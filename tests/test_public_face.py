"""What `gammacaps` shows of itself: its names, each with an example that runs."""

import doctest
import inspect
import operator
import subprocess
import sys

import pytest

import gammacaps
from gammacaps.errors import InputError

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
