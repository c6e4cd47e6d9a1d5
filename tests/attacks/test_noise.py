import torch

from gammacaps.attacks import grey, noise
from gammacaps.attacks.losses import margin


class Brightness(torch.nn.Module):
    """Class 1 above a mean brightness of 0.5."""

    def forward(self, images):
        mean = images.flatten(1).mean(1)
        return torch.stack((0.5 - mean, mean - 0.5), dim=1)


def test_noise_stays_in_the_ball_and_keeps_the_worst():
    torch.manual_seed(0)
    images, labels = torch.rand(8, 1, 5, 5), torch.tensor([0, 1] * 4)
    model = Brightness()
    one, many = (
        noise(model, images, labels, eps=0.2, draws=draws, generator=torch.Generator().manual_seed(1))
        for draws in (1, 30)
    )
    for attacked in (one, many):
        assert (attacked - images).abs().max() <= 0.2
        assert attacked.min() >= 0
        assert attacked.max() <= 1
    assert (margin(model(many), labels) >= margin(model(one), labels)).all()
    assert (margin(model(many), labels) >= margin(model(images), labels)).all()
    # The corners of the ball are tried too, not only its inside.
    inner = ((many - images).abs() < 0.19) & (many > 0) & (many < 1)
    assert (inner.flatten(1).sum(1) == 0).any()


def test_from_eps_one_half_on_all_images_become_the_same():
    images = torch.rand(5, 1, 4, 4)
    images[0], images[1] = 0, 1
    assert (grey(images, 0.5) == 0.5).all()
    near = grey(images, 0.2)
    assert (near[0] == 0.2).all()
    assert torch.allclose(near[1], torch.tensor(0.8))
    assert (near - images).abs().max() <= 0.2
