"""The judgement of benchmarks.faults, on made-up outcomes: what is lost is noticed, and what is fine is let be."""

import asyncio
import json
import random
import signal
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from benchmarks.faults import __main__ as schedule_module
from benchmarks.faults import crowd, judge
from benchmarks.faults.__main__ import FAULTS, Fault, schedule
from benchmarks.faults.corruption import DAMAGES, damage
from benchmarks.faults.judge import Ran, Tried
from benchmarks.faults.kills import _unsaved
from benchmarks.faults.rivals import wrong_mixture
from benchmarks.faults.stage import RUN, Stage, weights_wrong
from benchmarks.faults.table import BEGIN, END, check_page, losses, table, write_page
from gammacaps.errors import InputError

SENTENCE = "gammacaps: The disk is full: free space.\n"
TRACEBACK = "Traceback (most recent call last):\n  File ...\nKeyError: 'train'\n"
ROWS = [{"step": 5, "seconds": 0.1, "loss": 2.0}, {"step": 10, "seconds": 0.2, "loss": 1.0}]


@pytest.mark.parametrize(
    "ran",
    [
        Ran("train", 0, "step 5/60\n"),
        Ran("train", 2, f"step 5/60\n{SENTENCE}"),
        Ran("train", -9, "", signal.SIGKILL),
        Ran("train", 130, "gammacaps: Stopped at step 5, and saved.\n", signal.SIGINT),
        Ran("train", 143, "gammacaps: Stopped.\n", signal.SIGTERM),
    ],
)
def test_a_good_end_is_let_be(ran):
    assert judge.ended_badly(ran) == []


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        (Ran("train", 1, TRACEBACK), "traceback, KeyError: 'train'"),
        (Ran("train", 0, TRACEBACK), "traceback"),
        (Ran("train", -7, ""), "died by SIGBUS"),
        (Ran("train", -11, "", signal.SIGTERM), "died by SIGSEGV"),
        (Ran("train", None, ""), "hung"),
        (Ran("train", 2, "usage"), "without one sentence"),
        (Ran("train", 2, SENTENCE + SENTENCE), "without one sentence"),
        (Ran("train", 1, SENTENCE), "status 1"),
        (Ran("train", 130, SENTENCE), "status 130"),
    ],
)
def test_a_bad_end_is_noticed(ran, words):
    assert words in judge.ended_badly(ran)[0]


def test_a_stop_without_saving_is_noticed_while_training_is_at_work():
    hung_up = Ran("train", -signal.SIGHUP, "", signal.SIGHUP)
    assert "SIGHUP ended train" in _unsaved(hung_up, [{"step": 5}])[0]
    assert _unsaved(hung_up, []) == _unsaved(hung_up, [{"step": 200}]) == []
    assert _unsaved(Ran("train", -9, "", signal.SIGKILL), [{"step": 5}]) == []


def test_unequal_weights_are_noticed_to_the_last_bit():
    first = {"a": torch.tensor([1.0, float("nan")]), "b": torch.zeros(2, 3)}
    assert judge.unequal(first, {name: tensor.clone() for name, tensor in first.items()}) == []
    assert judge.unequal(first, {**first, "b": torch.tensor(0.0).neg().expand(2, 3)}) == ["b"]
    assert judge.unequal(first, {**first, "b": torch.zeros(3, 2)}) == ["b"]
    assert judge.unequal(first, {"a": first["a"]}) == ["b"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([ROWS[0], ROWS[0], ROWS[1]], "twice"),
        ([ROWS[1], ROWS[0]], "out of order"),
        ([ROWS[0], None], "broken line"),
        (ROWS[:1], "lacks 1 lines"),
        ([ROWS[0], {"step": 7}, ROWS[1]], "has 1 more"),
        ([ROWS[0], {**ROWS[1], "loss": 1.5}], "differs at step 10"),
    ],
)
def test_metrics_that_are_doubled_missing_or_wrong_are_noticed(rows, words):
    assert words in judge.metrics_wrong(rows, ROWS)[0]


def test_metrics_may_have_a_line_for_each_orderly_stop():
    rows = [ROWS[0], {"step": 7}, ROWS[1]]
    assert judge.metrics_wrong(rows, ROWS, stops=1) == []
    assert "2 more" in judge.metrics_wrong([{"step": 1}, *rows], ROWS, stops=1)[0]
    assert "lacks 1" in judge.metrics_wrong(rows[:2], ROWS, stops=1)[0]


def test_metrics_may_differ_in_their_seconds(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({**row, "seconds": 9}) + "\n" for row in ROWS))
    assert judge.metrics_wrong(judge.rows_of(path), ROWS) == []
    path.write_bytes(path.read_bytes()[:-5])
    assert (
        judge.metrics_wrong(judge.rows_of(path), ROWS) == judge.unreadable(path) == ["metrics.jsonl has a broken line"]
    )


def test_half_files_are_noticed(tmp_path):
    save_file({"a": torch.zeros(9)}, tmp_path / "model.safetensors")
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / ".lock").touch()
    assert judge.leftovers(tmp_path) == []
    assert [judge.unreadable(path) for path in tmp_path.iterdir()] == [[], [], []]
    (tmp_path / ".results.json.a1b2c3d_").touch()
    assert judge.leftovers(tmp_path) == [".results.json.a1b2c3d_ was left over"]
    (tmp_path / "results.json").write_text("{")
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-1])
    assert "not whole" in judge.unreadable(tmp_path / "results.json")[0]
    assert "not whole" in judge.unreadable(tmp_path / "model.safetensors")[0]
    assert "can't be read" in weights_wrong(tmp_path, {})[0]


def stage_of(tmp_path):
    """A stage on which nothing was run: a whole run, and what training gives with the seeds 0 and 1."""
    stage = Stage.__new__(Stage)
    stage.whole = tmp_path / "whole"
    run = stage.whole / RUN
    (run / "evaluation").mkdir(parents=True)
    (run / "results.json").write_text(json.dumps({"clean": 0.5, "seconds": 3, "machine": {"threads": 1}}))
    (run / "evaluation" / "fgsm.json").write_text(json.dumps({"predicted": {"0": 7}, "seconds": 1}))
    stage.seeds = {seed: ({"a": torch.full((2,), float(seed))}, ROWS) for seed in (0, 1)}
    return stage


def test_a_wrong_answer_is_noticed(tmp_path):
    stage, run = stage_of(tmp_path), tmp_path / "here" / RUN
    (run / "evaluation").mkdir(parents=True)
    (run / "results.json").write_text(json.dumps({"clean": 0.5, "seconds": 4, "machine": {"threads": 2}}))
    assert stage.wrong("evaluate", run.parent) == ["evaluation/fgsm.json differs"]
    (run / "evaluation" / "fgsm.json").write_text(json.dumps({"predicted": {"0": 7}, "seconds": 2}))
    assert stage.wrong("evaluate", run.parent) == []
    (run / "results.json").write_text(json.dumps({"clean": 0.6}))
    (run / "evaluation" / "fgsm.json").write_text('{"pred')
    assert stage.wrong("evaluate", run.parent) == ["results.json differs", "evaluation/fgsm.json differs"]


def test_a_config_with_the_weights_of_another_run_is_noticed(tmp_path):
    stage, run = stage_of(tmp_path), tmp_path / "here" / RUN
    run.mkdir(parents=True)
    assert wrong_mixture(stage, run.parent) == ["config.json is not whole"]
    (run / "config.json").write_text(json.dumps({"train": {"seed": 1}}))
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    save_file(stage.seeds[1][0], run / "model.safetensors")
    assert wrong_mixture(stage, run.parent) == []
    save_file(stage.seeds[0][0], run / "model.safetensors")
    assert wrong_mixture(stage, run.parent) == ["the weights differ (1 of 1 tensors) from those of its config.json"]


def test_each_damage_changes_the_file_and_the_seed_repeats_it(tmp_path):
    content, seen = bytes(range(1, 251)), {}
    for seed in range(40):
        path = tmp_path / f"{seed}"
        for again in (False, True):
            path.write_bytes(content)
            how = damage(path, random.Random(seed))
            after = path.read_bytes() if path.exists() else None
            assert after != content
            assert not again or seen[seed] == (how, after)
            seen[seed] = how, after
    assert {how for how, _ in seen.values()} == set(DAMAGES)


def test_each_fault_comes_once_and_then_by_its_share_of_the_time(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(schedule_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def once(fault, number):
        clock[0] += 1
        return Tried(f"{number}")

    faults = (Fault("often", once, 3), Fault("seldom", once, 1))
    assert [len(tried) for tried in schedule(faults, 0, once).values()] == [1, 1]
    tries = schedule(faults, 40, once)
    assert [len(tried) for tried in tries.values()] == [30, 10]
    assert [one.what for one in tries["often"]] == [str(number) for number in range(30)]


def test_the_table_counts_what_was_taken_and_lost_and_takes_its_place_in_a_page(tmp_path):
    tries = {"kills": [Tried("a"), Tried("b", ("the weights differ",), taken=True)], "bits": [Tried("c", taken=True)]}
    assert table(tries).splitlines()[2:] == ["| kills | 2 | 1 | 0 | 1 |", "| bits | 1 | 0 | 1 | 0 |"]
    assert losses(tries) == "- kills, 2: b: the weights differ"
    assert losses({"kills": [Tried("a")]}) == "Nothing was lost."
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n{BEGIN}\nold\n{END}\nend\n")
    write_page(page, ["one", "two"])
    assert page.read_text() == f"# Page\n{BEGIN}\none\n\ntwo\n{END}\nend\n"
    page.write_text(f"{END}{BEGIN}")
    with pytest.raises(InputError, match="no place for the table"):
        check_page(page)


def test_all_faults_have_names_of_their_own():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.slow
def test_a_server_that_bears_slow_headers_for_ever_and_answers_nobody_is_noticed(monkeypatch):
    for name, value in (("IDLE", 3), ("SLOW", 2), ("GARBAGE", 2), ("CLIENTS", 3)):
        monkeypatch.setattr(crowd, name, value)
    for name, value in (("SECONDS", 0.2), ("ANSWER_S", 0.05), ("HEADERS_S", 0.5), ("SETTLE_S", 0.01)):
        monkeypatch.setattr(crowd, name, value)

    async def silent(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 \r\n\r\n")
        writer.close()

    async def visited():
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            return await crowd.visit(server.sockets[0].getsockname()[1], 0, random.Random(0))

    seen = asyncio.run(visited())
    assert any("an ordinary question got 500" in words for words in seen.lost)
    assert any("2 of 2 sockets with slow headers were open" in words for words in seen.lost)
    assert "a client got 500" in seen.lost
