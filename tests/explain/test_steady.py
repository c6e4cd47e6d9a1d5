"""Steps whose pictures hold while they are disturbed: by hand on gradients that are known."""

import pytest
import torch

from gammacaps.explain.steady import KEPT, NOISE, PRICE, noise_for, smoothed, steadily

FIRST = torch.zeros(1, dtype=torch.int64)


def test_the_noise_follows_the_radius():
    assert noise_for(0.3) == pytest.approx(0.2)
    assert noise_for(None) == noise_for(0.0) == NOISE


def test_smoothing_spreads_a_dot_by_the_weights_of_1_4_6_4_1_and_keeps_what_is_even():
    dot = torch.zeros(1, 2, 9, 9)
    dot[0, 1, 4, 4] = 256
    row = torch.tensor([1.0, 4, 6, 4, 1])
    spread = smoothed(dot)
    torch.testing.assert_close(spread[0, 1, 2:7, 2:7], row[:, None] * row)
    assert spread[0, 0].abs().max() == 0  # channels stay apart
    assert spread.sum() == 256
    torch.testing.assert_close(smoothed(torch.full((1, 1, 4, 5), 0.3)), torch.full((1, 1, 4, 5), 0.3))


def test_a_gradient_that_is_even_moves_all_pixels_by_the_running_mean_and_the_price():
    """Of whatever size, it counts as 1; the mean holds 1 - 0.8 of it, then 1 - 0.8^2."""
    images = torch.full((1, 1, 6, 6), 0.5)
    moved = steadily(lambda seen: torch.full_like(seen, -1e-9), images, FIRST, [0.1, 0.2], noise=0.05, seed=0)
    expected = 0.5 + 0.1 * (1 - KEPT) + 0.2 * ((1 - KEPT**2) - PRICE)
    torch.testing.assert_close(moved, torch.full_like(images, expected))


def test_without_a_gradient_or_with_one_that_is_no_number_the_image_only_fades():
    images = torch.full((1, 1, 6, 6), 0.5)
    for value in (0.0, torch.nan):
        moved = steadily(lambda seen, v=value: torch.full_like(seen, v), images, FIRST, [0.1, 0.1], noise=0.1, seed=0)
        torch.testing.assert_close(moved, images - 0.1 * PRICE)


def test_an_image_is_seen_under_noise_of_that_size_and_moved_by_a_pixel_at_most():
    seen = []

    def gradient_of(images):
        seen.append(images)
        return torch.zeros_like(images)

    image = torch.zeros(1, 1, 40, 40)
    image[..., 20, 20] = 1
    steadily(gradient_of, image, FIRST, [0.0] * 30, noise=0.0, seed=3)
    places = {divmod(each.argmax().item(), 40) for each in seen}
    assert places <= {(y, x) for y in (19, 20, 21) for x in (19, 20, 21)}
    assert len(places) > 4
    seen.clear()
    steadily(gradient_of, image, FIRST, [0.0] * 30, noise=0.2, seed=3)
    rest = torch.stack([each.flatten()[:400] for each in seen])
    assert rest.std().item() == pytest.approx(0.2, abs=0.01)
    assert len({tuple(row.tolist()) for row in rest}) == 30  # new noise at each step


def test_what_disturbs_an_image_hangs_on_its_start_and_not_on_its_company():
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(3, 1, 6, 6, generator=generator)
    goal = torch.rand(1, 1, 6, 6, generator=generator)
    starts = torch.tensor([0, 1, 1])

    def go(rows):
        return steadily(lambda seen: seen - goal, images[rows], starts[rows], [0.05] * 4, noise=0.1, seed=1)

    together = go([0, 1, 2])
    for row in range(3):
        torch.testing.assert_close(go([row])[0], together[row], rtol=0, atol=1e-6)
    twice = steadily(lambda seen: seen - goal, images[[1, 1]], torch.tensor([0, 1]), [0.05] * 4, noise=0.1, seed=1)
    assert not torch.allclose(twice[0], twice[1])
