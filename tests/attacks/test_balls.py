"""The ball of L1 and distances, against what defines them."""

import pytest
import torch

from gammacaps.attacks import pgd
from gammacaps.attacks.balls import BALLS, L1Ball, distances


def test_distances_by_hand():
    offset = torch.tensor([3.0, -4.0]).view(1, 1, 1, 2)
    assert [distances(offset, norm).item() for norm in ("linf", "l2", "l1")] == pytest.approx([4.0, 5.0, 7.0])


def test_the_projection_by_hand():
    # From (0.5, 0.5) to (1.0, 0.7) the differences are 0.5 and 0.2: less 0.1 each they add up to 0.5.
    images, points = torch.full((1, 1, 1, 2), 0.5), torch.tensor([1.0, 0.7]).view(1, 1, 1, 2)
    there = L1Ball(images, 0.5).project(points)
    torch.testing.assert_close(there.flatten(), torch.tensor([0.9, 0.6]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("norm", list(BALLS))
def test_no_image_of_the_ball_is_nearer_than_the_projection(norm):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(3, 2, 3, 3, generator=generator)
    ball = BALLS[norm](images, 0.4)
    points = images + 2 * torch.randn(images.shape, generator=generator)
    there = ball.project(points)
    assert distances(there - images, norm).max() <= 0.4 + 1e-5
    assert there.min() >= 0
    assert there.max() <= 1
    # Of a convex set the nearest point is the one from which no other of the set lies towards the point.
    for _ in range(300):
        other = ball.start(generator)
        assert ((points - there) * (other - there)).flatten(1).sum(1).max() <= 1e-4


def test_a_random_point_of_l1_fills_the_ball_and_changes_with_the_draw():
    images = torch.full((50, 1, 2, 2), 0.5)
    points = L1Ball(images, 0.4).start(torch.Generator().manual_seed(0))
    far = distances(points - images, "l1")
    assert far.max() <= 0.4 + 1e-6
    # The share within half of the radius is that of the volume, 1/16 in four dimensions.
    assert 0 <= (far < 0.2).float().mean() < 0.25
    assert far.mean().item() == pytest.approx(0.4 * 4 / 5, abs=0.05)


def test_a_step_of_l1_moves_the_steepest_pixel_that_can():
    points = torch.tensor([0.0, 0.5, 0.2, 1.0]).view(1, 1, 2, 2)
    gradient = torch.tensor([-9.0, 2.0, -1.0, 8.0]).view(1, 1, 2, 2)  # the first and the last are at the end
    moved = L1Ball(points, 1.0).step(points, gradient, 0.3)
    torch.testing.assert_close(moved.flatten(), torch.tensor([0.0, 0.8, 0.2, 1.0]))


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.randn(2, 25, generator=torch.Generator().manual_seed(0))

    def forward(self, images):
        return images.flatten(1) @ self.weight.T


@pytest.mark.parametrize(("norm", "dual", "eps"), [("linf", 1, 0.1), ("l2", 2, 0.3), ("l1", torch.inf, 0.3)])
def test_pgd_finds_the_worst_of_a_linear_network_in_each_norm(norm, dual, eps):
    """It is eps times the weights' difference in the dual norm, where the box cuts nothing off the ball."""
    images = 0.4 + 0.2 * torch.rand(6, 1, 5, 5, generator=torch.Generator().manual_seed(1))
    labels, model = torch.zeros(6, dtype=torch.int64), Linear()
    way = model.weight[1] - model.weight[0]
    attacked = pgd(model, images, labels, eps=eps, step=eps / 10, steps=60, norm=norm, random_start=False)
    gained = (attacked - images).flatten(1) @ way
    torch.testing.assert_close(gained, torch.full((6,), eps * way.norm(p=dual).item()), rtol=1e-2, atol=1e-5)
