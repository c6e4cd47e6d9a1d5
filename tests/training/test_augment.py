"""Images changed at random: against loops over pixels, and the same however the batch is shared."""

import itertools
import math

import pytest
import torch

from gammacaps.data import DataSet, load_set
from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.augment import augmented, draw_change
from gammacaps.training.batches import batches
from gammacaps.training.new_model import new_model

IMAGES = torch.rand(6, 2, 5, 7, generator=torch.Generator().manual_seed(0))
WHOLE = slice(0, 6)


def moved(image, down, right, mirrored):
    """One image by loops."""
    _, height, width = image.shape
    result = torch.empty_like(image)
    for y in range(height):
        for x in range(width):
            at = width - 1 - x if mirrored else x
            result[:, y, x] = image[:, min(max(y - down, 0), height - 1), min(max(at - right, 0), width - 1)]
    return result


def between(image, y, x):
    """The pixels (C,) at a place between pixels, by their distances; beyond the edges as on them."""
    _, height, width = image.shape
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    above, left = math.floor(y), math.floor(x)
    below, beside = min(above + 1, height - 1), min(left + 1, width - 1)
    upper = (left + 1 - x) * image[:, above, left] + (x - left) * image[:, above, beside]
    lower = (left + 1 - x) * image[:, below, left] + (x - left) * image[:, below, beside]
    return (above + 1 - y) * upper + (y - above) * lower


def resampled(image, down, right, mirrored, angle, scale):
    """One image by loops: each place of the result is taken back to where it came from."""
    _, height, width = image.shape
    middle = complex((width - 1) / 2, (height - 1) / 2)
    result = torch.empty_like(image)
    for y in range(height):
        for x in range(width):
            place = complex(width - 1 - x if mirrored else x, y) - middle - complex(right, down)
            from_ = place * complex(math.cos(angle), -math.sin(angle)) / scale + middle
            result[:, y, x] = between(image, from_.imag, from_.real)
    return result


@pytest.mark.slow
def test_each_image_is_moved_within_bounds_and_half_are_mirrored():
    config = TrainConfig(shift=1, flip=True)
    found = []
    for step in range(40):
        for before, after in zip(IMAGES, augmented(IMAGES, config, step, 6, WHOLE), strict=True):
            ways = itertools.product((-1, 0, 1), (-1, 0, 1), (False, True))
            (way,) = [way for way in ways if torch.equal(after, moved(before, *way))]
            found.append(way)
    assert len(set(found)) == 18  # all of 3 x 3 x 2
    assert 0.35 < sum(mirrored for *_, mirrored in found) / len(found) < 0.65


@pytest.mark.parametrize(
    "options",
    [
        {"turn": 30.0},
        {"zoom": 0.4},
        {"turn": 180.0, "zoom": 0.5, "shift": 2, "flip": True},
    ],
)
def test_turns_and_scalings_are_the_loops(options):
    config, images = TrainConfig(**options), IMAGES.double()
    drawn = draw_change(config, 4, 6, WHOLE)
    angles, scales = drawn.angle.abs(), (drawn.scale - 1).abs()
    assert (angles <= math.radians(config.turn)).all()
    assert (scales <= config.zoom).all()
    assert [bool(angles.any()), bool(scales.any())] == ["turn" in options, "zoom" in options]
    changes = zip(drawn.down, drawn.right, drawn.mirrored, drawn.angle.tolist(), drawn.scale.tolist(), strict=True)
    expected = [resampled(image, int(d), int(r), *how) for image, (d, r, *how) in zip(images, changes, strict=True)]
    torch.testing.assert_close(augmented(images, config, 4, 6, WHOLE), torch.stack(expected), rtol=0, atol=1e-12)


def test_a_turn_by_next_to_nothing_is_the_shift_alone():
    options = {"shift": 2, "flip": True, "seed": 3}
    exact = augmented(IMAGES, TrainConfig(**options), 5, 6, WHOLE)
    nearly = augmented(IMAGES, TrainConfig(turn=1e-4, **options), 5, 6, WHOLE)
    assert not torch.equal(exact, IMAGES)
    torch.testing.assert_close(nearly, exact, rtol=0, atol=1e-4)


def test_brightness_and_contrast_are_the_formula_and_pixels_stay_pixels():
    config = TrainConfig(brightness=0.6, contrast=0.9)
    drawn, found = draw_change(config, 1, 6, WHOLE), augmented(IMAGES, config, 1, 6, WHOLE)
    for image, other, b, c in zip(IMAGES, found, drawn.brightness.tolist(), drawn.contrast.tolist(), strict=True):
        mean = sum(image.flatten().tolist()) / image.numel()
        for before, after in zip(image.flatten().tolist(), other.flatten().tolist(), strict=True):
            assert after == pytest.approx(min(max(mean + c * (before - mean) + b, 0), 1), abs=1e-6)
    assert (found == 0).any()
    assert (found == 1).any()
    assert drawn.brightness.abs().max() <= 0.6
    assert (drawn.contrast - 1).abs().max() <= 0.9
    dimmed = augmented(IMAGES, TrainConfig(brightness=0.6), 1, 6, WHOLE)
    torch.testing.assert_close(dimmed, (IMAGES + drawn.brightness.float().view(-1, 1, 1, 1)).clamp(0, 1))


def test_without_any_images_stay_as_they_are():
    assert augmented(IMAGES, TrainConfig(), 3, 6, WHOLE) is IMAGES
    only_moved = augmented(IMAGES, TrainConfig(shift=1), 3, 6, WHOLE)
    assert not torch.equal(only_moved, IMAGES)
    with pytest.raises(InputError, match="shift must be 0 or more, not -1"):
        TrainConfig(shift=-1)
    with pytest.raises(InputError, match="A shift of 28 moves images of 28 pixels out of sight: give fewer"):
        new_model(TrainConfig(shift=28), load_set("fashion-mini", "train"))


@pytest.mark.parametrize("more", [{}, {"turn": 9.0, "zoom": 0.1, "brightness": 0.2, "contrast": 0.3}])
def test_an_image_is_changed_alike_whoever_has_it(more):
    config = TrainConfig(shift=2, flip=True, **more)
    together = augmented(IMAGES, config, 5, 6, WHOLE)
    apart = [augmented(IMAGES[own], config, 5, 6, own) for own in (slice(0, 2), slice(2, 6))]
    assert torch.equal(together, torch.cat(apart))
    assert not torch.equal(together, augmented(IMAGES, config, 6, 6, WHOLE))


def test_batches_are_moved_by_their_step():
    data = DataSet(torch.rand(12, 1, 5, 5), torch.arange(12) % 2, ("a", "b"), "made up", "here")
    config = TrainConfig(batch=4, shift=1)
    coming = batches(data, config, slice(0, 4), torch.device("cpu"), 0)
    first = [next(coming)[0] for _ in range(3)]
    again = batches(data, config, slice(0, 4), torch.device("cpu"), 2)
    assert torch.equal(first[2], next(again)[0])
    plain = next(batches(data, TrainConfig(batch=4), slice(0, 4), torch.device("cpu"), 0))[0]
    assert not torch.equal(plain, first[0])
