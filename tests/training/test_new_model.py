"""A first convolution that takes in the data's mean and deviation."""

import torch
from former_small import CONVOLUTION

from gammacaps import create
from gammacaps.data import DataSet
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.new_model import new_model, spread, standardize_first


def pale(count=300):
    generator = torch.Generator().manual_seed(0)
    images = 0.7 + 0.05 * torch.rand(count, 1, 28, 28, generator=generator)
    return DataSet(images, torch.arange(count) % 10, tuple("0123456789"), "pale", "made up")


def test_the_first_layer_sees_pale_images_as_standardized_ones():
    data = pale()
    torch.manual_seed(0)
    plain = create("small", **CONVOLUTION, filters=8, primary_types=2, hidden=(6,), decoder=())
    torch.manual_seed(0)
    started = create("small", **CONVOLUTION, filters=8, primary_types=2, hidden=(6,), decoder=())
    standardize_first(started, data)
    standardized = (data.images - data.images.mean()) / data.images.std(correction=0)
    torch.testing.assert_close(started(data.images[:5]), plain(standardized[:5]), rtol=1e-3, atol=1e-5)
    assert (started(data.images[:5]) - plain(data.images[:5])).abs().max() > 1e-3


def test_the_spread_is_that_of_images_from_all_over_the_set():
    data = pale(5000)
    data.images[2500:] += 0.2  # a set that is stored class by class
    mean, deviation = spread(data)
    assert abs(mean - data.images.mean().item()) < 1e-3
    assert abs(deviation - data.images.std().item()) < 1e-3
    black = DataSet(torch.zeros(4, 1, 28, 28), torch.zeros(4, dtype=torch.int64), ("a", "b"), "black", "made up")
    assert spread(black)[1] > 0


def test_a_training_is_told_so():
    small = {"model": ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]"), "device": "cpu"}
    plain, started = (new_model(TrainConfig(standardize=s, **small), pale()) for s in (False, True))
    assert not torch.equal(plain.encoder[0].weight, started.encoder[0].weight)
    assert torch.equal(plain.primary.convolution.weight, started.primary.convolution.weight)
