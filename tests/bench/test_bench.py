"""`gammacaps bench`: the gate, the rows and the command; what needs a GPU is imitated by Triton's interpreter."""

import csv
import dataclasses
import json
import math

import pytest
import torch
from former_small import CONVOLUTION

import gammacaps
from gammacaps import nn
from gammacaps.bench import gate, run, table, tasks, ways
from gammacaps.cli import main
from gammacaps.models import frozen

TINY = {**CONVOLUTION, "filters": 8, "primary_types": 2, "hidden": (3,), "decoder": ()}
QUICK = ["bench", "--device", "cpu", "--preset", "small", "--batches", "2", "--rounds", "2"]


def status(*arguments) -> int:
    """The exit status of a command run in this process."""
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def replace_ways(monkeypatch, name, change):
    """In the task of that name every way gives what `change` makes of its outputs."""
    right = tasks.task_of

    def task_of(which, *rest):
        task = right(which, *rest)
        if which != name:
            return task
        wrong = [
            {way: lambda make=make: lambda: change(make()()) for way, make in of.items()}
            for of in (task.ways, task.on_cpu or {})
        ]
        return dataclasses.replace(task, ways=wrong[0], on_cpu=wrong[1])

    monkeypatch.setattr(run, "task_of", task_of)


@pytest.mark.slow
def test_the_command_prints_a_table_and_appends_rows(tmp_path, capsys, monkeypatch):
    tiny = {"filters": 4, "primary_types": 2, "types": (2, 2)}
    monkeypatch.setattr(tasks, "create", lambda name, **changes: gammacaps.create(name, **tiny, **changes))
    path = tmp_path / "rows.csv"
    for arguments in (["--tasks", "forward", "attack", "routing"], ["--tasks", "matrix", "--json"]):
        assert status(*QUICK, *arguments, "--out", path) == 0
        out, err = capsys.readouterr()
        assert "this is a CPU: way compiled" in err
        if "--json" in arguments:
            assert [(row["task"], row["peak_mib"]) for row in json.loads(out)] == [("matrix capsules", None)]
        else:
            assert [line.split()[:-6] for line in out.splitlines() if " 2  " in line] == [
                ["forward", "small", "eager"],
                ["forward", "small", "engine"],
                ["attack", "pass", "small", "eager"],
                ["attack", "pass", "small", "engine"],
                ["attack", "pass", "deep", "eager"],
                ["attack", "pass", "deep", "engine"],
                ["routing", "layer", "1", "small", "eager"],
                ["routing", "layer", "1", "small", "engine"],
            ]
            assert "to eager" in out
            assert "peak MiB" not in out  # columns without a figure
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert tuple(reader.fieldnames) == table.COLUMNS
    assert [row["network"] for row in rows] == ["small"] * 4 + ["deep"] * 2 + ["small"] * 2 + ["matrix"]
    assert [row["way"] for row in rows] == ["eager", "engine"] * 4 + ["eager"]
    for row in rows:
        assert row["gammacaps"] == gammacaps.__version__
        assert (row["batch"], row["repeats"]) == ("2", "2")
        assert float(row["ratio_to_eager"]) == 1 if row["way"] == "eager" else float(row["ratio_to_eager"]) > 0
        assert 0 < float(row["q1_ms"]) <= float(row["median_ms"]) <= float(row["q3_ms"]) < math.inf
        assert row["floor_share"] == row["ratio_to_compiled"] == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda outputs: (outputs[0] * 1.001, outputs[1]),
        lambda outputs: (outputs[0], outputs[1] * 1.01),
        lambda outputs: (outputs[0], outputs[1] * torch.nan),
    ],
    ids=["scores", "gradient", "NaN"],
)
def test_a_way_that_is_wrong_is_not_timed(monkeypatch, capsys, change):
    replace_ways(monkeypatch, "attack", change)
    assert status(*QUICK, "--tasks", "forward", "attack") == 1
    out, err = capsys.readouterr()
    assert "attack pass small eager 2: not timed: the relative error of its" in err
    assert "forward" in out
    assert "attack pass" not in out


def test_a_way_that_breaks_is_one_line_and_the_rest_goes_on(monkeypatch, capsys):
    def broken(outputs):
        raise RuntimeError("no memory\nand much more")

    replace_ways(monkeypatch, "forward", broken)
    assert status(*QUICK, "--tasks", "forward", "routing", "--json") == 1
    out, err = capsys.readouterr()
    assert "forward eager 2: failed: RuntimeError: no memory\n" in err
    assert {row["task"] for row in json.loads(out)} == {"routing layer 1"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rounds", "0"], "rounds must be at least 1"),
        (["--batches", "8", "0"], "batches must be at least 1"),
        (["--tasks", "many", "training"], "on a GPU"),
        (["--tasks", "backward"], "backward"),
        (["--out", "."], "can't be read as CSV"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_status_2(capsys, arguments, words):
    assert status(*QUICK, *arguments) == 2
    out, err = capsys.readouterr()
    assert words in " ".join((out + err).split())
    assert "Traceback" not in err


def test_rows_of_other_columns_are_refused_before_the_work(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.csv"
    path.write_text("date,what\n2026-01-01,old\n")
    monkeypatch.setattr(run, "Benchmark", None)
    assert status(*QUICK, "--out", path) == 2
    assert "has other columns" in capsys.readouterr().err
    assert path.read_text() == "date,what\n2026-01-01,old\n"


def test_bfloat16_is_measured_by_plain_pytorch():
    names = ("scores", "image gradient")
    assert gate.objection(names, [2e-3, 0.08], [1e-3, 0.05]) is None
    assert "scores is 2.1e-03 (limit 2.0e-03)" in gate.objection(names, [2.1e-3, 0.08], [1e-3, 0.05])
    assert gate.objection(names, [1e-3, 0.0], [math.nan, math.nan]) is not None  # where that failed, as float32


def test_another_best_wrong_class_is_not_an_error_of_the_gradient():
    labels, exact = torch.tensor([0, 0]), torch.tensor([[0.0, 1, 0.999999], [0, 1, 2]])
    scores = torch.tensor([[0.0, 0.999999, 1], [0, 1, 2]])  # the first image's best two have changed places
    gradients = torch.tensor([[3.0], [4]]), torch.tensor([[-3.0], [4]])
    errors = gate.relative_errors((scores, gradients[0]), (exact, gradients[1]), labels)
    assert errors[0] < 1e-6
    assert errors[1] == 0
    assert gate.relative_errors((scores, torch.tensor(torch.nan)), (exact,), None)[1:] == [
        pytest.approx(torch.nan, nan_ok=True)
    ]


@pytest.mark.slow
def test_the_floor_is_counted_from_operations():
    # By hand: places x filters x taps x channels of both convolutions, a product and a sum each, forward and back.
    paper = 2 * 2 * (20 * 20 * 256 * 81 + 6 * 6 * 256 * 81 * 256)
    assert gate.product_flop("paper") == pytest.approx(paper, rel=0.02)  # beside it products of routing's votes
    stem = 28 * 28 * 64 * 9 * (1 + 64) + 14 * 14 * 128 * 9 * (64 + 128) + 5 * 5 * 256 * 9 * 128
    assert gate.product_flop("deep") == pytest.approx(2 * 2 * stem, rel=0.05)
    assert gate.floor_ms("paper", 128, "NVIDIA H200") == pytest.approx(0.12 + 0.17, rel=0.05)
    assert gate.floor_ms("paper", 32, "NVIDIA H200") * 4 == pytest.approx(gate.floor_ms("paper", 128, "NVIDIA H200"))
    assert gate.floor_ms("paper", 128, "x86_64") is None
    assert gate.floor_ms("matrix", 128, "NVIDIA H200") is None


@pytest.mark.slow
def test_whole_attacks_and_steps_pass_the_gate(monkeypatch):
    tiny = {"filters": (2, 3), "width": 8}
    monkeypatch.setattr(tasks, "create", lambda name, **changes: gammacaps.create(name, **tiny, **changes))
    model = gammacaps.create("cnn", **tiny).requires_grad_(False)
    for name in ("pgd", "short-training"):
        task = tasks.task_of(name, "cnn", model, 2, False)
        exact = task.exact()
        errors = gate.relative_errors(task.ways["eager"]()(), exact, None)
        assert gate.objection(task.outputs, errors, None) is None
        assert exact[0].abs().max() > 0.05


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels are compiled here, and take no tensors of a CPU")
def test_engine_and_formulas_give_the_exact_answers(monkeypatch):
    # In float32, with a batch that needs filling up.
    monkeypatch.setattr(ways, "BATCHES", 2)
    whole = frozen.FrozenNetwork
    monkeypatch.setattr(frozen, "FrozenNetwork", lambda model, batch, _: whole(model, batch, torch.float32))
    monkeypatch.setattr(ways, "compiled", lambda function: function)
    convolution = {**CONVOLUTION, "filters": 16, "kernel": 5, "stride": 1, "primary_kernel": 3}
    shape = {**convolution, "image_shape": (1, 9, 9), "decoder": ()}
    capsules = {"primary_types": 2, "primary_size": 4, "hidden": (3,), "hidden_size": 4, "class_size": 4, "classes": 3}
    model = gammacaps.create("small", **shape, **capsules).requires_grad_(False)
    for layer in model.routed:
        layer.weight *= 6
    many = gammacaps.nn.RoutedCapsules(5, 7, 3, 4)
    found = [tasks.task_of(name, "small", model, 1, False) for name in ("attack", "routing")]
    for task in [*found, tasks.many_task(2, many)]:
        exact = task.exact()
        for make in task.ways.values():
            errors = gate.relative_errors(make()(), exact, task.labels)
            assert gate.objection(task.outputs, errors, None) is None


def test_on_a_cpu_plain_pytorch_has_no_code_of_ours(monkeypatch):
    """What it is timed against: no written-out gradient, no C, no product of patches."""
    for module, name in ((nn.vector, "convolve"), (nn.deep, "convolve"), (nn.vector, "route")):
        monkeypatch.setattr(module, name, None)
    images = torch.rand(2, 1, 28, 28)
    for preset, shape in (("small", {}), ("paper", {"filters": 8, "primary_types": 2})):
        model = gammacaps.create(preset, decoder=(), **shape)
        with pytest.raises(TypeError):
            model(images)
        assert ways.by_library(model)(images).shape == (2, 10)


def test_the_training_step_is_attacked_the_plain_way_and_the_environment_put_back(monkeypatch):
    monkeypatch.setenv("GAMMACAPS_PLAIN", "mine")
    model = gammacaps.create("small", **TINY).requires_grad_(False)
    monkeypatch.setattr(
        tasks, "TrainConfig", lambda **given: gammacaps.runs.train_config.TrainConfig(attack_steps=2, **given)
    )
    task = tasks.task_of("training", "small", model, 2, False)
    assert gate.relative_errors(task.ways["eager"]()(), task.exact(), None) == [0, 0]  # on a CPU all is in float32
    with pytest.raises(RuntimeError, match="the fast attack can't run here"):
        task.ways["engine"]()
    assert ways.os.environ["GAMMACAPS_PLAIN"] == "mine"
