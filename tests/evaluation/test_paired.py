"""Differences with intervals: against scipy's bootstrap and exact test, and their coverage by simulation."""

import numpy as np
import pytest
import torch
from scipy import stats

from gammacaps.errors import InputError
from gammacaps.evaluation.by_image import ByImage, Right, unpacked
from gammacaps.evaluation.interval import wilson
from gammacaps.evaluation.paired import mean_interval, mean_share, paired_difference, unpaired_difference


def right(bits):
    return Right(np.arange(len(bits)), np.asarray(bits, dtype=bool))


def counted(both, first, second, neither):
    """Two networks' bits by how many images both have right, only the first, only the second, neither."""
    a = np.repeat([True, True, False, False], [both, first, second, neither])
    b = np.repeat([True, False, True, False], [both, first, second, neither])
    return right(a), right(b)


def share(bits):
    return {"accuracy": bits.right.mean(), "correct": int(bits.right.sum()), "images": len(bits.right)}


@pytest.mark.slow
@pytest.mark.parametrize("cells", [(600, 90, 60, 250), (880, 40, 10, 70), (200, 150, 250, 400)])
def test_the_interval_is_that_of_scipy_s_paired_bootstrap(cells):
    a, b = counted(*cells)
    ours = paired_difference([a], [b])
    each = a.right.astype(float) - b.right
    made = stats.bootstrap((each,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(0))
    assert ours.value == pytest.approx(each.mean())
    assert ours.low == pytest.approx(made.confidence_interval.low, abs=0.003)
    assert ours.high == pytest.approx(made.confidence_interval.high, abs=0.003)


@pytest.mark.parametrize("only_first", [0, 1, 3, 6, 8, 12, 25, 40])
@pytest.mark.parametrize("only_second", [0, 2, 5, 20])
def test_it_leaves_out_0_where_the_exact_test_of_mcnemar_is_far_from_5_percent(only_first, only_second):
    a, b = counted(500, only_first, only_second, 200)
    ours = paired_difference([a], [b])
    count = only_first + only_second
    p = stats.binomtest(only_first, count).pvalue if count else 1.0
    if p < 0.02:
        assert not ours.low <= 0 <= ours.high
    if p > 0.12:
        assert ours.low <= 0 <= ours.high


@pytest.mark.parametrize(
    ("images", "cells"),
    [(1000, (0.85, 0.05, 0.03, 0.07)), (1000, (0.0, 0.002, 0.001, 0.997)), (200, (0.5, 0.1, 0.2, 0.2))],
)
def test_95_of_100_intervals_hold_the_true_difference(images, cells):
    draws = np.random.default_rng(1).multinomial(images, cells, size=3000)
    truth, held = cells[1] - cells[2], 0
    for _, first, second, _ in draws:
        each = np.zeros(images)
        each[:first], each[first : first + second] = 1, -1
        low, high = mean_interval(each)
        held += low <= truth <= high
    assert 0.94 <= held / len(draws) <= 0.999  # of 3,000, 0.95 is known to 0.004


def test_of_two_seeds_the_images_stay_the_unit():
    """Seeds that err on the same images tell no more than one: the interval must not shrink by counting them."""
    rng = np.random.default_rng(2)
    hard = rng.random(2000) < 0.3
    a, b = right(~hard), right(~hard & (rng.random(2000) > 0.05))
    one, two = paired_difference([a], [b]), paired_difference([a, a], [b, b])
    assert (two.low, two.high) == pytest.approx((one.low, one.high))
    other = paired_difference([a, b], [b, b])
    assert other.by_seed == pytest.approx((one.value, 0.0))
    assert other.value == pytest.approx(one.value / 2)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(2, 2), (2, 1)])
def test_coverage_with_several_seeds(seeds):
    rng, held, runs, images = np.random.default_rng(3), 0, 1500, 400
    for _ in range(runs):
        easy = rng.random(images)  # each image has its own chance, the same for all networks but for 0.05
        a, b = (
            [right(rng.random(images) < np.clip(easy + more, 0, 1)) for _ in range(count)]
            for more, count in zip((0.05, 0.0), seeds, strict=True)
        )
        ours = paired_difference(a, b)
        held += ours.low <= 0.05 - 0.05**2 / 2 <= ours.high  # the mean over images, some of which can't be more than 1
    assert 0.935 <= held / runs <= 0.97


def test_where_networks_never_differ_the_interval_is_no_point():
    none = paired_difference([right([False] * 1000)], [right([False] * 1000)])
    assert none.value == 0
    assert none.low == pytest.approx(-0.0028, abs=2e-4)
    assert none.high == -none.low
    assert none.words() == "0.0 points (-0.3 to +0.3)"


def test_only_images_that_both_were_shown_count():
    a = Right(np.array([1, 3, 5, 7]), np.array([True, True, False, True]))
    b = Right(np.array([3, 5, 6]), np.array([False, False, True]))
    assert paired_difference([a], [b]).images == 2
    assert paired_difference([a], [b]).value == 0.5
    with pytest.raises(InputError, match="not shown the same images"):
        paired_difference([a], [Right(np.array([2]), np.array([True]))])
    with pytest.raises(InputError, match="at least one of each"):
        paired_difference([a], [])


def test_without_bits_the_interval_is_wider_and_as_newcombe_has_it():
    wide = unpaired_difference(
        {"accuracy": 56 / 70, "correct": 56, "images": 70}, {"accuracy": 48 / 80, "correct": 48, "images": 80}
    )
    assert (wide.low, wide.high) == pytest.approx((0.0524, 0.3339), abs=1e-4)  # his example (a), method 10
    a, b = counted(800, 40, 30, 130)
    paired, unpaired = paired_difference([a], [b]), unpaired_difference(share(a), share(b))
    assert unpaired.low < paired.low < paired.high < unpaired.high
    assert not unpaired.paired


@pytest.mark.parametrize("correct", [0, 3, 500, 940, 1000])
def test_a_share_of_one_seed_is_nearly_wilson_s(correct):
    value, low, high = mean_share([right(np.arange(1000) < correct)])
    assert value == correct / 1000
    ours, theirs = (low, high), wilson(correct, 1000)
    assert ours == pytest.approx(theirs, abs=0.0015)
    twice = mean_share([right(np.arange(1000) < correct)] * 2)
    assert twice == pytest.approx((value, low, high))


def test_bits_are_packed_eight_to_a_byte_and_come_back():
    rng = np.random.default_rng(0)
    places = torch.from_numpy(np.sort(rng.choice(10_000, 1003, replace=False)))
    kept = ByImage(places, {"clean": torch.rand(1003) < 0.9, "pgd@0.3": torch.rand(1003) < 0.5})
    arrays = kept.packed(10_000, "authors-")
    assert {name: len(array) for name, array in arrays.items()} == {
        "places:1003": 1250,
        "right:1003:authors-clean": 126,
        "right:1003:authors-pgd@0.3": 126,
    }
    found = unpacked(arrays, "authors-pgd@0.3")
    assert (found.places == places.numpy()).all()
    assert (found.right == kept.right["pgd@0.3"].numpy()).all()
    assert unpacked(arrays, "pgd@0.3") is None
    assert unpacked({}, "clean") is None
    with pytest.raises(InputError, match="in the order of their test set"):
        ByImage(torch.tensor([3, 1]), {}).packed(5)
