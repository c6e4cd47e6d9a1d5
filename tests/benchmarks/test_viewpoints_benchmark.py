"""The experiment with other viewpoints: what is compared, by hand, and a whole one on few made-up pairs."""

import json
import sys

import pytest
import torch

from benchmarks.viewpoints import __main__ as command
from benchmarks.viewpoints import compare
from benchmarks.viewpoints.learn import LARGE, SMALL, Network, by_toy, config_of, some
from gammacaps.data import DataSet
from gammacaps.data.viewpoints import ToyImages, ViewpointSplit
from gammacaps.training.new_model import new_model


def toys(numbers, images=4, shape=(1, 8, 8)):
    """So many images of each toy; the toys are ten times the class and an instance."""
    each = torch.tensor(numbers).repeat_interleave(images)
    pixels = torch.rand(len(each), *shape, generator=torch.Generator().manual_seed(len(each)))
    return ToyImages(DataSet(pixels, each // 10, ("a", "b"), "smallnorb", "made-up.mat"), each)


def row(network, seed, curve, numbers=(0, 1, 10, 11)):
    points = [{"step": 10 * (k + 1), "familiar": f, "new": n} for k, (f, n) in enumerate(curve)]
    every = {"familiar": list(numbers), "new": list(numbers)}
    counts = {"familiar": [10] * len(numbers), "new": [20] * len(numbers)}
    known = {"network": network, "seed": seed, "viewpoints": "azimuth", "parameters": 7}
    return {**known, "toys": every, "toy_images": counts, "curve": points}


CNN = row("CNN", 0, [([4, 4, 4, 4], [9, 9, 9, 9]), ([9, 5, 5, 5], [10, 8, 12, 14])])  # ends with 24 of 40
SDA = row("SDA", 0, [([5, 5, 5, 5], [10, 10, 6, 6]), ([6, 6, 6, 6], [12, 12, 12, 12]), ([9, 9, 9, 9], [15] * 4)])


def test_networks_are_compared_where_they_first_know_as_much_as_the_weakest_ends_with():
    assert compare.level([CNN, SDA]) == 0.6
    assert compare.stopped_at(SDA, 0.6)["step"] == 20
    assert compare.stopped_at(SDA, 0.95)["step"] == 30  # it never does: its end
    matched = {line.network: line for line in compare.compare([CNN, SDA], compare.stopped_at)}
    assert (matched["SDA"].steps, matched["CNN"].steps) == ((20,), (20,))
    assert matched["SDA"].new.value == 48 / 80
    assert matched["SDA"].more.value == pytest.approx(48 / 80 - 44 / 80)
    assert matched["CNN"].more is None
    ends = {line.network: line for line in compare.compare([CNN, SDA], compare.last)}
    assert ends["SDA"].steps == (30,)
    assert ends["SDA"].more.value == pytest.approx(60 / 80 - 44 / 80)


def test_each_seed_has_its_own_level_and_toys_of_all_seeds_count():
    others = (2, 3, 12, 13)
    weak = row("CNN", 1, [([2, 2, 2, 2], [4, 4, 4, 4])], others)
    strong = row("SDA", 1, [([3, 3, 3, 3], [8, 8, 8, 8]), ([9, 9, 9, 9], [20] * 4)], others)
    (line,) = (one for one in compare.compare([CNN, SDA, weak, strong], compare.stopped_at) if one.network == "SDA")
    assert line.steps == (20, 10)
    assert line.new.value == (48 + 32) / 160
    assert line.more.value == pytest.approx((48 + 32) / 160 - (44 + 16) / 160)


def test_the_interval_is_over_toys_of_each_class():
    # Both toys of a class are alike, so that no resample differs, however much the classes do.
    alike = compare.estimate({0: (20, 20), 1: (20, 20), 10: (0, 20), 11: (0, 20)})
    assert (alike.value, alike.low, alike.high) == (0.5, 0.5, 0.5)
    # Of two toys, one known and one not, one is drawn: a class has 0 or 20 of 20.
    unlike = compare.estimate({0: (20, 20), 1: (0, 20)})
    assert (unlike.value, unlike.low, unlike.high) == (0.5, 0.0, 1.0)
    drawn = compare.resamples([0, 1, 10, 11, 12])
    assert drawn.shape == (compare.RESAMPLES, 3)  # of two toys one, of three two
    assert set(drawn[:, :1].unique().tolist()) == {0, 1}
    assert set(drawn[:, 1:].unique().tolist()) == {2, 3, 4}
    # A difference that every toy has is certain, whatever the toys.
    even = compare.estimate({0: (15, 20), 1: (5, 20)}, {0: (14, 20), 1: (4, 20)})
    assert (even.value, even.low, even.high) == pytest.approx((0.05, 0.05, 0.05))


def test_right_answers_are_counted_toy_by_toy():
    part = toys([0, 3, 10], images=2)
    answers = torch.tensor([0, 1, 1, 1, 1, 1])  # one of the first toy, none of the second, both of the third

    class Knows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def forward(self, images):
            return torch.nn.functional.one_hot(answers, 2).float()

    assert by_toy.__wrapped__(Knows(), part) == [1, 0, 2]


def test_some_images_are_as_many_of_each_toy_and_drawn_by_the_seed():
    part = toys([0, 1, 11], images=9)
    few = some(part, 12, 0)
    assert few.toys.tolist() == [0] * 4 + [1] * 4 + [11] * 4
    assert torch.equal(few.data.labels, few.toys // 10)
    assert torch.equal(few.data.images, some(part, 12, 0).data.images)
    assert not torch.equal(few.data.images, some(part, 12, 1).data.images)
    assert some(part, None, 0) is some(part, 99, 0) is part


@pytest.mark.slow
@pytest.mark.parametrize("networks", [SMALL, LARGE])
def test_all_networks_can_be_made_for_smallnorb_and_have_no_decoder(networks):
    data = toys([0, 10], shape=(1, 28, 28)).data
    assert list(networks) == ["SDA", "RBA", "EM", "CNN"]
    for network in networks.values():
        config = config_of(network, steps=1, batch=2, seed=0, device="cpu")
        assert not new_model(config, data).reconstructs
        assert not config.robust


@pytest.fixture
def made_up(monkeypatch):
    """smallNORB in the small, and networks that learn it in no time."""
    split = ViewpointSplit(toys([2, 12]), toys([0, 1, 10, 11]), toys([0, 1, 10, 11], 8), "made up")
    tiny = {"SDA": Network("small", changes=("filters=2", "primary_types=2", "hidden=[3]", "decoder=[]"))}
    tiny["CNN"] = Network("cnn", changes=("filters=[2,2]", "width=4"))
    monkeypatch.setattr(command, "viewpoint_split", lambda by, **how: split)
    monkeypatch.setitem(command.NETWORKS, "small", tiny)


@pytest.mark.slow
def test_the_command_trains_measures_and_trains_nothing_twice(made_up, tmp_path, monkeypatch, capsys):
    out, picture = tmp_path / "rows.jsonl", tmp_path / "picture.png"
    options = ["--steps", "4", "--every", "3", "--batch", "4", "--size", "8", "--device", "cpu", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["viewpoints", *options, "--picture", str(picture)])
    command.main()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 2 * 2 * 2  # seeds, viewpoints, networks
    for one in rows:
        assert [point["step"] for point in one["curve"]] == [3, 4]
        assert one["toy_images"] == {"familiar": [4] * 4, "new": [8] * 4}
        assert one["train_images"] == 8
        assert {"device", "torch", "commit"} <= one["machine"].keys()
    first = capsys.readouterr().out
    assert first.count("| SDA |") == first.count("| CNN |") == 4  # matched and at the end, twice
    assert picture.stat().st_size > 1000
    command.main()
    assert capsys.readouterr().out == first
    assert len(out.read_text().splitlines()) == 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "SDB"], "There is no network 'SDB'"),
        (["--steps", "0"], "steps must be at least 1, not 0"),
        (["--out", "broken.jsonl"], "does not hold lines of JSON"),
        (["--out", "list.jsonl"], "holds something else than trainings"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(made_up, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.jsonl").write_text("{")
    (tmp_path / "list.jsonl").write_text("[1]\n")
    monkeypatch.setattr(sys, "argv", ["viewpoints", *options])
    with pytest.raises(SystemExit, match=words):
        command.main()
