"""The ways to search: their starts, and how long the steps are."""

import pytest
import torch

from gammacaps.explain.search import SEARCHES, start_images, step_sizes

SHAPE = (2, 7, 8)


def test_the_paper_s_steps_are_all_alike():
    assert step_sizes("paper", 4, 0.01) == 4 * [0.01]


def test_improved_steps_fall_from_twice_the_step_to_a_tenth_of_it():
    assert step_sizes("improved", 3, 0.01) == pytest.approx([0.02, 0.0105, 0.001])
    assert step_sizes("improved", 1, 0.01) == [0.02]


@pytest.mark.parametrize("search", SEARCHES)
def test_starts_are_images_that_do_not_depend_on_how_many_there_are(search):
    starts = start_images(0, 1, 2, 6, SHAPE, search)
    assert starts.shape == (6, *SHAPE)
    assert 0 <= starts.min() < starts.max() <= 1
    assert torch.equal(starts[:3], start_images(0, 1, 2, 3, SHAPE, search))
    assert not torch.equal(starts, start_images(0, 1, 3, 6, SHAPE, search))


def test_improved_starts_are_faint():
    starts = start_images(0, 1, 2, 4, SHAPE, "improved").flatten(1)
    assert (starts.amax(1) - starts.amin(1)).max() <= 0.1 + 1e-6
    assert starts.mean(1).tolist() == pytest.approx([0.05, 0.5, 0.05, 0.5], abs=0.03)
