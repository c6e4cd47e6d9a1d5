import csv
import dataclasses

import pytest
import torch

from benchmarks import materialised, routing
from gammacaps import create
from gammacaps.ops import rule_named
from gammacaps.ops.routing.rules import route_by_formula


@pytest.fixture
def tasks():
    """A small network and its first routed layer: three rounds of everything take a moment."""
    model = create("paper", filters=8, primary_types=2)
    return [routing.network_task(model, batch=2), routing.routing_task(model.routed[0], batch=2)]


def with_error(task, way):
    """The task with a wrong way in the place of gammacaps."""
    return dataclasses.replace(task, ways={**task.ways, "gammacaps": way})


# (B, I, J, d, D): the least of everything; nothing a power of two, d > D; more parents than children, D > d.
@pytest.mark.parametrize("size", [(1, 1, 2, 1, 1), (2, 7, 3, 5, 4), (3, 5, 10, 3, 7)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_materialised_routing_is_the_reference(size, with_bias):
    B, I, J, d, D = size
    poses, weight = torch.randn(B, I, d).requires_grad_(), torch.randn(I, J, d, D)
    bias = torch.randn(J, D) if with_bias else None
    ours = materialised.sda(poses, materialised.by_parent(weight), bias, 3)
    standard, _ = route_by_formula(rule_named("sda"), poses, weight, bias, 3)
    torch.testing.assert_close(ours, standard, rtol=1e-5, atol=1e-5)
    backwards = torch.randn_like(standard)
    gradients = [torch.autograd.grad(output, poses, backwards)[0] for output in (ours, standard)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)


def test_the_three_ways_agree_and_are_not_the_same_code(tasks):
    for task in tasks:
        assert list(task.ways) == ["materialised", "reference", "gammacaps"]
        assert len(set(task.ways.values())) == 3
        assert routing.disagreements(task) == []


def test_the_small_networks_pass_the_gate():
    for preset in routing.PRESETS:
        task = routing.network_task(create(preset, filters=4, primary_types=2), 2, f"network {preset}")
        assert task.what == f"network {preset}"
        assert routing.disagreements(task) == []


def test_the_gate_sees_a_wrong_output_a_wrong_gradient_and_nan(tasks):
    for task in tasks:
        right = task.ways["gammacaps"]
        wrong = [
            lambda x, right=right: right(x) * 1.0002,
            lambda x, right=right: right(x) + (right(x) - right(x).detach()) * 0.002,  # the output is right
            lambda x, right=right: right(x) * torch.nan,
        ]
        for way in wrong:
            (sentence,) = routing.disagreements(with_error(task, way))
            assert sentence.startswith(f"{task.what}: gammacaps is not the reference")


def test_the_gate_sees_one_wrong_sample(tasks):
    right = tasks[1].ways["gammacaps"]
    factors = torch.tensor([1, 1.001]).view(2, 1, 1)
    assert routing.disagreements(with_error(tasks[1], lambda poses: right(poses) * factors))


def test_no_times_and_no_rows_where_the_ways_disagree(tasks, tmp_path, capsys):
    wrong = with_error(tasks[1], lambda poses: tasks[1].ways["gammacaps"](poses) + 0.1)
    with pytest.raises(SystemExit) as stopped:
        routing.benchmark([tasks[0], wrong], routing.Options(repeats=1, out=tmp_path / "rows.csv"))
    # Python prints a text given to sys.exit and exits with status 1.
    assert isinstance(stopped.value.code, str)
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "rows.csv").exists()


@pytest.mark.slow
def test_rows_have_the_columns_and_are_appended(tasks, tmp_path, capsys):
    path = tmp_path / "new" / "rows.csv"
    for _ in range(2):
        routing.benchmark(tasks, routing.Options(repeats=3, out=path))
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert ",".join(reader.fieldnames) == (
        "date,gammacaps,commit,device_name,threads,torch,python,what,implementation,batch,repeats,"
        "median_ms,q1_ms,q3_ms,ratio_to_materialised"
    )
    assert [row["implementation"] for row in rows] == ["materialised", "reference", "gammacaps"] * 4
    assert [row["what"] for row in rows[2:4]] == ["network", "routing I=72 J=32 d=8 D=8"]
    for row in rows:
        assert all(row.values())
        assert (row["batch"], row["repeats"]) == ("2", "3")
        assert 0 < float(row["q1_ms"]) <= float(row["median_ms"]) <= float(row["q3_ms"])
        assert row["implementation"] != "materialised" or float(row["ratio_to_materialised"]) == 1
    assert "median" in capsys.readouterr().out


def test_the_ratio_is_taken_within_each_round(tasks):
    # The machine is ten times slower in one round: the ratio does not see it.
    times = {"materialised": [4.0, 40.0, 8.0], "gammacaps": [1.0, 10.0, 4.0]}
    rows = {row["implementation"]: row for row in routing.rows_of(tasks[0], times)}
    assert rows["gammacaps"]["ratio_to_materialised"] == 0.25
    assert (rows["gammacaps"]["median_ms"], rows["gammacaps"]["min_ms"]) == (4, 1)


def test_nothing_is_written_unless_asked_for(tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(routing, "RESULTS", tmp_path / "results.csv")
    routing.benchmark(tasks[1:], routing.Options(repeats=1))
    assert list(tmp_path.iterdir()) == []
    routing.benchmark(tasks[1:], routing.Options(repeats=1, save=True))
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 4
