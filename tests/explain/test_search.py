"""The ways to search: their starts, and how long the steps are."""

import pytest
import torch

from gammacaps.explain.activate import average_best
from gammacaps.explain.search import SEARCHES, start_images, step_sizes
from gammacaps.models import CapsuleModel, Parse

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
    assert starts.mean(1).tolist() == pytest.approx([0.05, 0.2, 0.35, 0.5], abs=0.03)


def test_what_the_best_starts_found_is_averaged_as_far_as_it_is_the_same():
    """A capsule that is active by either half of the image, and not by both at half the brightness."""

    class Halves(CapsuleModel):
        image_shape, classes, layers = (1, 2, 2), 1, ("primary", "class")

        def parse(self, images, *, couplings=True):
            upper, lower = images[:, 0, 0].mean(1), images[:, 0, 1].mean(1)
            length = ((upper - lower).abs() * torch.maximum(upper, lower)).clamp(max=1).unsqueeze(1)  # B 1
            pose = length.unsqueeze(-1)
            return Parse(self.layers, (pose, pose), (length, length), (None,), (None,), length)

    upper = torch.tensor([[1.0, 1.0], [0.0, 0.0]]).view(1, 1, 2, 2)
    images = torch.cat([upper, 0.99 * upper, upper.flip(2) * 0.98])
    model = Halves()
    model.register_parameter("weight", torch.nn.Parameter(torch.zeros(1)))
    alone = average_best(model, 1, 0, images, 0.0, 3, 0, apart=True)
    assert alone.averaged == 2
    torch.testing.assert_close(alone.image, images[:2].mean(0))
    assert alone.activation > 0.95
    whole = average_best(model, 1, 0, images, 0.0, 3, 0, apart=False)
    assert whole.averaged == 3
    assert whole.activation < 0.5
