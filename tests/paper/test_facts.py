"""What is possible on data, against all pairings; EM's T before learning; and both on the page."""

import itertools

import pytest
import torch
from made_up import as_the_paper_says

from gammacaps.data import load_set
from gammacaps.paper import facts
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.details import details
from gammacaps.paper.page import write_page
from gammacaps.paper.record import FACTS, read_records
from gammacaps.paper.upper_bound import between_classes, upper_bound


def most_pairs(near):
    """The largest number of pairs without a common image, by trying all."""
    edges = [(i, j) for i, j in itertools.combinations(range(len(near)), 2) if near[i, j]]
    for count in range(len(near) // 2, 0, -1):
        for chosen in itertools.combinations(edges, count):
            if len(set(itertools.chain(*chosen))) == 2 * count:
                return count
    return 0


@pytest.mark.parametrize("seed", range(6))
def test_no_more_is_claimed_impossible_than_is(seed):
    generator = torch.Generator().manual_seed(seed)
    images, labels = torch.rand(8, 1, 1, 2, generator=generator), torch.arange(8) % 3
    distances = between_classes(images, labels)
    for eps in (0.05, 0.1, 0.2, 0.5):
        pairs = round((1 - upper_bound(distances, eps)) * 8)
        most = most_pairs(distances <= 2 * eps)
        assert most / 2 <= pairs <= most


def test_images_of_one_class_and_far_ones_stay_apart():
    images = torch.tensor([0.0, 0.1, 0.2, 0.9]).reshape(4, 1, 1, 1)
    distances = between_classes(images, torch.tensor([0, 0, 1, 1]))
    assert torch.equal(distances[0].isinf(), torch.tensor([True, True, False, False]))
    assert upper_bound(distances, 0.04) == 1
    assert upper_bound(distances, 0.06) == 0.75  # 0.1 and 0.2 meet
    assert upper_bound(distances, 0.5) == 0.5
    many = torch.rand(200, 1, 3, 3)
    assert torch.equal(between_classes(many, torch.arange(200)).isinf(), torch.eye(200, dtype=torch.bool))


@pytest.mark.slow
def test_facts_are_made_once_and_stand_on_the_page(tmp_path, monkeypatch):
    sets = []

    def small(name, split, data_dir):
        sets.append(name)
        return load_set("fashion-mini", split)

    monkeypatch.setattr(facts, "load_set", small)
    monkeypatch.setattr(facts, "find", lambda name, data_dir: tmp_path)
    monkeypatch.setattr(facts, "EM_IMAGES", 2)
    options = ReproduceConfig(results=tmp_path / "reproduction", evaluate_images=50)
    facts.make_facts(options)
    assert sets == ["mnist", "fashion-mnist", "smallnorb", "mnist"]
    facts.make_facts(options)
    assert len(sets) == 4
    facts.make_facts(ReproduceConfig(results=tmp_path / "reproduction", evaluate_images=20))
    assert len(sets) == 4  # those of more images stay
    told = facts.read_facts(tmp_path / "reproduction")
    T = [told["em_T"][n] for n in "1234"]
    assert T[0] == pytest.approx(0, abs=1e-6)
    assert sorted(T) == T
    assert T[3] > 0.8  # hard without any training
    assert told["data"]["smallnorb"]["images"] == 50
    assert told["data"]["smallnorb"]["possible"]["0.5"] == 0.1  # all can become the same grey image
    text = details(as_the_paper_says(), tmp_path, {}, told)
    assert f"0.00 with 1, {T[1]:.2f} with 2, {T[2]:.2f} with 3" in text
    assert "10.0% at 0.5" in text
    write_page(tmp_path / "reproduction")
    assert "**T of EM.**" in (tmp_path / "reproduction" / "details.md").read_text()
    assert (tmp_path / "reproduction" / FACTS).exists()
    assert read_records(tmp_path / "reproduction") == {}


def test_without_the_data_there_are_no_facts(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "find", lambda name, data_dir: None)
    facts.make_facts(ReproduceConfig(results=tmp_path / "reproduction"))
    assert facts.read_facts(tmp_path / "reproduction") is None


@pytest.mark.parametrize("other", ["{}", "[]", '{"data": 3, "em_T": {}}', '{"data": {"mnist": {}}, "em_T": {}}'])
def test_facts_of_another_kind_are_none(tmp_path, other):
    (tmp_path / "facts.json").write_text(other)
    assert facts.read_facts(tmp_path) is None
