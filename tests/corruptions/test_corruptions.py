"""Each corruption against what is known of it, for grey and colour images of several sizes."""

import math

import pytest
import torch

from gammacaps.corruptions import corrupt, kinds
from gammacaps.corruptions.cover import plasma
from gammacaps.corruptions.smoothing import smooth
from gammacaps.errors import InputError


def square(channels=1, side=28):
    """White in the middle half."""
    images = torch.zeros(3, channels, side, side)
    quarter = side // 4
    images[:, :, quarter : side - quarter, quarter : side - quarter] = 1
    return images


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (2, 20, 24)])
def test_every_kind_gives_other_images_of_the_same_shape_and_the_same_for_a_seed(kind, shape):
    images = torch.rand(4, *shape, generator=torch.Generator().manual_seed(0))
    before, first = images.clone(), corrupt(images, kind, seed=1)
    assert torch.equal(images, before)
    assert first.shape == images.shape
    assert first.min() >= 0
    assert first.max() <= 1
    assert (first - images).abs().mean() > 0.01
    assert torch.equal(first, corrupt(images, kind, seed=1))
    if kind not in ("scale", "brightness", "stripe", "canny edges"):  # in which nothing is drawn
        assert not torch.equal(first, corrupt(images, kind, seed=2))


def test_there_are_the_fifteen_of_the_paper():
    assert len(kinds()) == 15


def test_shot_noise_has_the_mean_and_the_steps_of_three_photons():
    images = torch.full((1, 1, 200, 200), 0.2)
    noisy = corrupt(images, "shot noise")
    assert {round(value * 3) for value in noisy.unique().tolist()} == {0, 1, 2, 3}
    mean = sum(min(k / 3, 1) * math.exp(-0.6) * 0.6**k / math.factorial(k) for k in range(20))
    assert noisy.mean().item() == pytest.approx(mean, abs=0.01)


def test_impulse_noise_breaks_17_of_100_half_of_them_white():
    noisy = corrupt(torch.full((1, 3, 100, 100), 0.4), "impulse noise")
    assert (noisy == 0).float().mean().item() == pytest.approx(0.085, abs=0.005)
    assert (noisy == 1).float().mean().item() == pytest.approx(0.085, abs=0.005)


def test_a_gaussian_filter_of_a_point_is_the_bell_and_keeps_the_sum():
    image = torch.zeros(1, 1, 21, 21)
    image[..., 10, 10] = 1
    blurred = smooth(image, 1.5)[0, 0]
    assert blurred.sum().item() == pytest.approx(1, abs=1e-5)
    assert (blurred[10, 12] / blurred[10, 10]).item() == pytest.approx(math.exp(-0.5 * (2 / 1.5) ** 2), rel=1e-4)


def test_blurs_keep_what_is_even_and_the_light_of_what_is_not():
    for kind in ("glass blur", "motion blur"):
        even = torch.full((2, 3, 20, 20), 0.3)
        torch.testing.assert_close(corrupt(even, kind), even)
    image = torch.zeros(1, 1, 35, 35)
    image[..., 17, 17] = 1
    for kind in ("glass blur", "motion blur"):
        assert corrupt(image, kind).sum().item() == pytest.approx(1, abs=1e-3)


def test_motion_smears_a_point_along_one_line_that_fades():
    image = torch.zeros(1, 1, 28, 28)
    image[..., 14, 22] = 1
    smeared = corrupt(image, "motion blur")[0, 0]
    rows, columns = smeared.nonzero(as_tuple=True)
    assert columns.max() == 22
    assert columns.min() < 16
    by_column = smeared.sum(0)
    assert by_column[20:23].sum() > 4 * by_column[14:17].sum()  # weights fall with the way
    slope = (rows - 14).abs() <= (22 - columns) + 1  # at most 45 degrees
    assert slope.all()


def test_a_square_is_moved_by_three_of_28_pixels():
    moved = corrupt(square(), "translate", seed=3)
    ways = [square()[0].roll((down, right), (1, 2)) for down in (-3, 3) for right in (-3, 3)]
    assert all(any(torch.equal(one.round(), way) for way in ways) for one in moved)


def test_a_square_gets_smaller_by_seven_tenths_and_turned_and_sheared_keep_the_middle():
    assert corrupt(square(), "scale").sum().item() == pytest.approx(0.49 * square().sum().item(), rel=0.06)
    turned, back = corrupt(square(), "rotate"), square()
    assert turned.sum().item() == pytest.approx(back.sum().item(), rel=0.03)
    # A corner of the square, 9.2 pixels from the middle at 45 degrees, is now at 45 +- 23 degrees.
    for one in turned:
        angles = [math.radians(45 + side * 22.9) for side in (-1, 1)]
        at = [(8.5 * math.sin(angle), 8.5 * math.cos(angle)) for angle in angles]
        assert max(one[0, round(13.5 + down), round(13.5 + right)].item() for down, right in at) > 0.5
    sheared = corrupt(square(), "shear")
    assert sheared[:, :, 12:16, 12:16].min() > 0.99
    rows = sheared[0, 0, 10], sheared[0, 0, 17]
    middles = [(row * torch.arange(28)).sum() / row.sum() for row in rows]
    assert abs((middles[1] - middles[0]).item()) == pytest.approx(7 * math.sin(0.4), abs=0.1)


def test_brightness_raises_the_value_and_keeps_the_hue():
    grey = corrupt(torch.tensor([0.0, 0.2, 0.7]).view(1, 1, 1, 3), "brightness")
    torch.testing.assert_close(grey.flatten(), torch.tensor([0.5, 0.7, 1.0]))
    colour = corrupt(torch.tensor([0.4, 0.2, 0.0]).view(1, 3, 1, 1), "brightness")
    torch.testing.assert_close(colour.flatten(), torch.tensor([0.9, 0.45, 0.0]))


def test_stripes_are_the_outer_quarters_turned_round():
    striped = corrupt(torch.full((1, 1, 28, 28), 0.2), "stripe")[0, 0, 0]
    assert [round(value, 3) for value in striped.tolist()] == [0.8] * 7 + [0.2] * 14 + [0.8] * 7


def test_fog_lifts_the_dark_and_a_map_goes_from_0_to_1():
    foggy = corrupt(square(), "fog")
    assert foggy[:, :, 0, 0].mean() > 0.05
    assert foggy.amax() <= 1
    maps = plasma(2, 64, torch.Generator().manual_seed(0))
    assert maps.amin(dim=(1, 2)).tolist() == [0, 0]
    assert maps.amax(dim=(1, 2)).tolist() == [1, 1]
    near = (maps - maps.roll(1, 1)).abs().mean()
    assert near < 0.5 * (maps - maps.roll(32, 1)).abs().mean()  # uneven at large scales rather than small ones


def test_mud_is_grey_or_brown_where_it_covers():
    black = corrupt(torch.zeros(2, 1, 28, 28), "spatter")
    assert black.max().item() <= 63 / 255 + 1e-6
    assert 0.01 < (black > 0).float().mean().item() < 0.9
    brown = corrupt(torch.zeros(2, 3, 28, 28), "spatter")
    most = brown.flatten(2).amax((0, 2))
    torch.testing.assert_close(most[1] / most[0], torch.tensor(42 / 63))


def test_a_dotted_line_is_on_for_two_columns_of_four_and_white_in_its_middle():
    dotted = corrupt(torch.zeros(5, 1, 28, 28), "dotted line")
    on = (dotted > 0).any(dim=2)[:, 0]  # B W
    # The last column has none.
    assert on.tolist() == [[column % 4 >= 2 and column < 27 for column in range(28)]] * 5
    assert (dotted.amax(dim=2)[:, 0, 2:27][:, on[0, 2:27]] > 0.75).all()


def test_a_zigzag_goes_up_and_down_from_one_side_to_the_other():
    drawn = corrupt(torch.zeros(20, 1, 28, 28), "zigzag")[:, 0]
    assert (drawn[:, :, :2] == 0).all()
    whole = [one for one in drawn if one[0].max() == 0 and one[-1].max() == 0]  # not cut off above or below
    assert whole
    for one in whole:
        weight = one / one.sum(0).clamp_min(1e-6)
        centre = (weight * torch.arange(28)[:, None]).sum(0)[4:23]
        falls = (centre.diff().sign().diff() != 0).sum()
        assert 3 <= falls <= 12  # it turns round at its corners


def test_the_edges_of_a_square_are_its_outline_alone():
    edges = corrupt(square(channels=3), "canny edges")
    assert set(edges.unique().tolist()) == {0.0, 1.0}
    assert edges[:, :, 10:18, 10:18].max() == 0
    assert edges[:, :, :4].max() == 0
    for middle in (edges[0, 0, 14], edges[0, 0, :, 14]):
        places = middle.nonzero().flatten().tolist()
        assert places
        assert all(min(abs(place - 6.5), abs(place - 20.5)) <= 1 for place in places)
    assert corrupt(torch.full((1, 1, 28, 28), 0.6), "canny edges").max() == 0


def test_an_unknown_kind_is_one_sentence():
    with pytest.raises(InputError, match="There is no corruption 'fogg'"):
        corrupt(square(), "fogg")
