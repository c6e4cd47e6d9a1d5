import json
import sys

import pytest

from benchmarks import larger, start


@pytest.mark.slow
def test_quick_tells_speed_memory_and_accuracy_as_json(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("GAMMACAPS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["larger", "--quick", "--device", "cpu"])
    larger.main()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["task"], row["classes"]) for row in rows] == [("smallnorb", 5), ("many classes", 1000)]
    for row in rows:
        assert row["steps_a_second"] > 0
        assert row["peak_mib"] > 0
        assert 0 <= row["accuracy"] <= 1
        assert row["machine"]["device"] == "cpu"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hidden 16, 100 classes", "hidden 16-16-16, 10 classes"])
def test_long_capsules_carry_the_image_further(name):
    changes = start.NETWORKS[name]
    paper, long = (start.at_the_start(start.started(changes, long)) for long in (False, True))
    assert long["moves"] > 20 * paper["moves"]
    assert long["gradient"] > 20 * paper["gradient"]
    assert len(long["lengths"]) == len(changes["hidden"]) + 2
