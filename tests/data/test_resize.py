import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gammacaps.data import area_resize
from gammacaps.data.resize import overlaps
from gammacaps.errors import InputError

sides = st.integers(1, 13)


def slow_resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Repeat each pixel up to a size that both sizes divide, then average blocks."""
    height, width = images.shape[-2:]
    tall, wide = math.lcm(height, size[0]), math.lcm(width, size[1])
    fine = images.repeat_interleave(tall // height, -2).repeat_interleave(wide // width, -1)
    return fine.unflatten(-2, (size[0], -1)).unflatten(-1, (size[1], -1)).mean((-3, -1))


@given(height=sides, width=sides, new_height=sides, new_width=sides, seed=st.integers(0, 99))
@settings(deadline=None, derandomize=True)
def test_equals_supersampling_and_keeps_the_mean(
    height: int, width: int, new_height: int, new_width: int, seed: int
) -> None:
    images = torch.rand(2, 3, height, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    small = area_resize(images, (new_height, new_width))
    torch.testing.assert_close(small, slow_resize(images, (new_height, new_width)), rtol=0, atol=1e-14)
    torch.testing.assert_close(small.mean((-2, -1)), images.mean((-2, -1)), rtol=0, atol=1e-14)


# 96 and 48 to 28 are smallNORB's; 5 to 7 enlarges; 1 to 4 and 4 to 1 are the ends of the scale.
@pytest.mark.parametrize(("old", "new"), [(96, 28), (48, 28), (5, 7), (1, 4), (4, 1), (28, 28)])
def test_constant_stays_constant(old: int, new: int) -> None:
    images = torch.full((1, 2, old, old), 0.7)
    torch.testing.assert_close(area_resize(images, (new, new)), torch.full((1, 2, new, new), 0.7))
    assert overlaps(old, new).min() >= 0
    torch.testing.assert_close(overlaps(old, new).sum(1), torch.ones(new, dtype=torch.float64))


def test_fractions_by_hand() -> None:
    # Three pixels into two: each takes one whole and half of the middle one.
    assert overlaps(3, 2).tolist() == [[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]]
    # Two into three: the middle one lies half on each.
    assert overlaps(2, 3).tolist() == [[1, 0], [0.5, 0.5], [0, 1]]


def test_same_size_is_the_same_tensor_and_gradients_flow() -> None:
    images = torch.rand(1, 1, 4, 4, requires_grad=True)
    assert area_resize(images, (4, 4)) is images
    area_resize(images, (2, 2)).sum().backward()
    assert images.grad is not None
    torch.testing.assert_close(images.grad, torch.full((1, 1, 4, 4), 0.25))


def test_no_size_below_one() -> None:
    with pytest.raises(InputError, match=r"can't be resized to \(0, 3\): height and width must be 1 or more"):
        area_resize(torch.rand(1, 1, 4, 4), (0, 3))


def test_a_side_without_measure_is_refused() -> None:
    with pytest.raises(InputError, match="Images of 1 x 65537 pixels can't be resized: cut them first"):
        area_resize(torch.rand(1, 1, 1, 2**16 + 1), (1, 4))
