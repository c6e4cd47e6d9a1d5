"""Images moved and mirrored: against loops over pixels, and the same however the batch is shared."""

import itertools

import pytest
import torch

from gammacaps.data import DataSet, load_set
from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.augment import augmented
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


def test_without_either_images_stay_as_they_are():
    assert augmented(IMAGES, TrainConfig(), 3, 6, WHOLE) is IMAGES
    only_moved = augmented(IMAGES, TrainConfig(shift=1), 3, 6, WHOLE)
    assert not torch.equal(only_moved, IMAGES)
    with pytest.raises(InputError, match="shift must be 0 or more, not -1"):
        TrainConfig(shift=-1)
    with pytest.raises(InputError, match="A shift of 28 moves images of 28 pixels out of sight: give fewer"):
        new_model(TrainConfig(shift=28), load_set("fashion-mini", "train"))


def test_an_image_is_moved_alike_whoever_has_it():
    config = TrainConfig(shift=2, flip=True)
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
