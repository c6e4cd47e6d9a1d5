"""smallNORB with each image scaled to mean 0 and deviation 1: told in [0, 1], so that all else takes it."""

import pytest
import torch

from gammacaps.attacks import pgd
from gammacaps.data import find, load_set
from gammacaps.data.scaled import SPAN, scaled


def in_deviations(images):
    return (images - 0.5) * SPAN


def test_each_image_has_mean_0_and_deviation_1():
    torch.manual_seed(0)
    images = (0.7 + 0.1 * torch.randn(20, 1, 8, 8)).clamp(0, 1)
    made = in_deviations(scaled(images)).double()
    assert made.mean(dim=(1, 2, 3)).abs().max() < 1e-4
    torch.testing.assert_close(made.std(dim=(1, 2, 3), correction=0), torch.ones(20).double(), atol=1e-4, rtol=0)
    # Brighter, darker or paler: the same image.
    torch.testing.assert_close(scaled(0.2 + 0.5 * images), scaled(images), atol=1e-5, rtol=0)


def test_an_image_of_one_grey_stays_one():
    assert (scaled(torch.full((2, 1, 4, 4), 0.3)) - 0.5).abs().max() < 1e-5


def test_a_ball_is_one_for_all_here_and_another_for_each_image_in_pixels():
    """An attack of radius eps in deviations moves pixels by eps times the image's own deviation."""
    torch.manual_seed(0)
    images = torch.rand(6, 1, 8, 8) * torch.linspace(0.1, 0.9, 6).view(-1, 1, 1, 1)
    deviation = images.std(dim=(1, 2, 3), correction=0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    given, eps = scaled(images), 0.3
    moved = pgd(network, given, torch.zeros(6, dtype=torch.int64), eps=eps / SPAN, steps=20)
    apart = in_deviations(moved) - in_deviations(given)
    in_pixels = (apart * deviation.view(-1, 1, 1, 1)).abs().flatten(1).amax(1)
    torch.testing.assert_close(in_pixels, eps * deviation, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_the_real_set_is_the_same_files_in_another_scale(shared_data):
    assert find("smallnorb-scaled", shared_data) == find("smallnorb", shared_data)
    plain, other = (load_set(name, "test", data_dir=shared_data) for name in ("smallnorb", "smallnorb-scaled"))
    assert (plain.labels == other.labels).all()
    assert (plain.source, other.name) == (other.source, "smallnorb-scaled")
    assert 0 < other.images.min() < other.images.max() < 1  # nothing was cut off
    assert in_deviations(other.images).abs().max() + 0.5 < SPAN / 2  # nor is by an attack
    torch.testing.assert_close(scaled(plain.images[:50]), other.images[:50])
