"""Where a capsule looks: against a capsule of which it is known, and images one by one."""

import pytest
import torch
from square import square_detector

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain import looks_at, tinted


def test_a_capsule_known_to_detect_a_square_looks_at_it_alone():
    images = torch.full((1, 1, 4, 4), 0.5)
    found = looks_at(square_detector(), images, "hidden 1", [0])
    assert found.shape == (1, 4, 4)
    assert found.max() == found[0, 0, 0] == 1
    assert found[0, 3].max() == found[0, :, 3].max() == 0  # further away than the smoothing reaches


def test_each_image_has_a_capsule_of_its_own_in_batches_of_any_size():
    model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    capsules = [2, 0, 5]
    together = looks_at(model, images[:3], "hidden 1", capsules)
    alone = [looks_at(model, images[k : k + 1], 1, [j])[0] for k, j in enumerate(capsules)]
    torch.testing.assert_close(together, torch.stack(alone), atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(together, looks_at(model, images[:3], 1, capsules, batch=2), atol=1e-4, rtol=1e-3)
    assert 0 <= together.min() < together.amax((1, 2)).min() == 1
    assert all(weight.grad is None for weight in model.parameters())


def test_images_are_tinted_where_a_capsule_looks():
    images, looks = torch.rand(2, 1, 5, 6), torch.zeros(2, 5, 6)
    looks[0, 1, 2] = 1
    shown = tinted(images, looks)
    assert torch.equal(shown[1], images[1].expand(3, -1, -1))
    red, _, blue = shown[0, :, 1, 2]
    assert red > 0.7 > 0.3 > blue
    assert torch.equal(tinted(shown, torch.zeros(2, 5, 6)), shown)  # colours stay


@pytest.mark.parametrize(
    ("capsules", "words"), [([0], "2 images need 2 capsules, one for each, not 1"), ([0, 99], "There is no capsule 99")]
)
def test_bad_input_is_named(capsules, words):
    with pytest.raises(InputError, match=words):
        looks_at(gammacaps.load("fashion-mini"), torch.rand(2, 1, 28, 28), "hidden 1", capsules)
