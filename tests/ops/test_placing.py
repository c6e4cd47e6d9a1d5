"""Images turned, shifted and scaled, against what is known of a square."""

import pytest
import torch

from gammacaps.ops.placing import placed, resampled


def square(side=8, channels=1):
    """White in the upper left quarter."""
    images = torch.zeros(1, channels, side, side)
    images[..., : side // 2, : side // 2] = 1
    return images


@pytest.mark.parametrize("channels", [1, 3])
def test_a_quarter_turn_clockwise_takes_the_upper_left_to_the_upper_right(channels):
    turned = placed(square(channels=channels), turn=90)
    torch.testing.assert_close(turned, square(channels=channels).rot90(-1, (2, 3)), atol=1e-6, rtol=0)


def test_whole_pixels_right_and_down_leave_black_or_the_edges():
    image = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0))
    moved = placed(image, right=2, down=1)
    torch.testing.assert_close(moved[:, :, 1:, 2:], image[:, :, :-1, :-2], atol=1e-6, rtol=0)
    assert moved[:, :, 0].max() < 1e-6
    assert moved[:, :, :, :2].max() < 1e-6
    continued = placed(image, right=2, down=1, edges="continued")
    torch.testing.assert_close(continued[:, :, 1:, 0], image[:, :, :-1, 0], atol=1e-6, rtol=0)


def test_twice_the_size_is_four_times_the_area_about_the_centre():
    image = torch.zeros(1, 1, 16, 16)
    image[..., 6:10, 6:10] = 1
    doubled = placed(image, scale=2)
    assert doubled.sum().item() == pytest.approx(4 * 16, rel=0.05)
    torch.testing.assert_close(doubled, doubled.flip(2).flip(3), atol=1e-6, rtol=0)


def test_turned_first_and_shifted_then_also_where_sides_differ():
    image = torch.rand(1, 1, 6, 10, generator=torch.Generator().manual_seed(1))
    both = placed(image, turn=180, right=3, down=-1)
    torch.testing.assert_close(both, placed(image.flip(2).flip(3), right=3, down=-1), atol=1e-5, rtol=0)


def test_a_shear_moves_each_row_by_its_own_way():
    image = torch.rand(1, 1, 5, 5, generator=torch.Generator().manual_seed(2))
    sheared = resampled(image, torch.tensor([[[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]]))
    torch.testing.assert_close(sheared[0, 0, 2], image[0, 0, 2], atol=1e-6, rtol=0)  # the middle row stays
    torch.testing.assert_close(sheared[0, 0, 4, :3], image[0, 0, 4, 2:], atol=1e-6, rtol=0)
