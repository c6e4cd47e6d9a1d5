"""Unseen images, how they are told apart, and the attack that lengthens a class capsule, on networks known by hand."""

import pytest
import torch

import gammacaps
from gammacaps.beyond.sureness import KnownPatterns, said
from gammacaps.beyond.unseen import BLANK, NOISE, lengthened, other_sets, told_apart, unseen_images
from gammacaps.errors import InputError
from gammacaps.models import Model

CPU = torch.device("cpu")


class Bright(Model):
    """Two classes; the first is as probable as the image is bright."""

    image_shape, classes = (3, 4, 4), 2

    def __init__(self):
        super().__init__()
        self.zero = torch.nn.Parameter(torch.zeros(1))

    def forward(self, images):
        mean = images.flatten(1).mean(1) + self.zero
        return torch.stack((mean, torch.zeros_like(mean)), dim=1)

    def probabilities(self, scores):
        return scores


def test_noise_and_blanks_have_the_network_s_shape():
    noise = unseen_images(NOISE, (3, 32, 32), 7, seed=1)
    assert noise.shape == (7, 3, 32, 32)
    assert torch.equal(noise, unseen_images(NOISE, (3, 32, 32), 7, seed=1))
    blank = unseen_images(BLANK, (1, 5, 6), 3, seed=0)
    assert blank.flatten(1).std(1).max() == 0
    assert blank[:, 0, 0, 0].tolist() == [0.0, 0.5, 1.0]


def test_another_data_set_is_resized_and_given_the_channels_and_all_classes():
    images = unseen_images("fashion-mini", (3, 32, 32), 20, seed=0)
    assert images.shape == (20, 3, 32, 32)
    assert torch.equal(images[:, 0], images[:, 2])
    with pytest.raises(InputError, match="There is no data set 'fashoin'"):
        unseen_images("fashoin", (1, 28, 28), 5, seed=0)


def test_who_is_shown_is_not_the_network_s_own_data(tmp_path, monkeypatch):
    monkeypatch.setattr("gammacaps.beyond.unseen.find", lambda name, where: tmp_path)
    assert other_sets("smallnorb-unseen", (), None) == (["mnist", "fashion-mini"], [])  # nor all of smallNORB
    monkeypatch.setattr("gammacaps.beyond.unseen.find", lambda name, where: None if name == "smallnorb" else tmp_path)
    assert other_sets("fashion-mnist", (), None)[0] == ["mnist"]
    there, left = other_sets("photos", (), None)
    assert there == ["mnist", "fashion-mini"]
    assert left == ["smallnorb was not shown: it is not on this machine (gammacaps data smallnorb gets it)."]
    assert other_sets("mnist", ("mine",), None) == (["mine"], [])


def test_the_attack_makes_the_class_capsule_longer_within_eps():
    images = torch.full((2, 3, 4, 4), 0.5)
    moved = lengthened(Bright(), images, eps=0.1, seed=0)
    torch.testing.assert_close(moved, images + 0.1)


def test_dark_images_are_told_from_bright_ones_until_an_attack_makes_them_brighter():
    model = Bright()
    known = said(model, torch.full((10, 3, 4, 4), 0.6), 4, CPU)
    dark = torch.full((5, 3, 4, 4), 0.5)
    ways = {"seed": 0, "batch": 2, "device": CPU}
    near, far = (told_apart(model, known, dark, None, eps=eps, **ways) for eps in (0.05, 0.2))
    assert near["length"] == {"auroc": 1.0, "false_alarms": 0.0, "attacked": {"auroc": 1.0, "false_alarms": 0.0}}
    assert far["length"]["attacked"] == {"auroc": 0.0, "false_alarms": 1.0}
    assert near["pattern"] is None
    assert near["images"] == 5


def test_a_pattern_that_no_class_has_is_strange():
    pattern = torch.tensor([[True, True, False, False]] * 20 + [[False, False, True, True]] * 20)
    known = KnownPatterns(pattern, torch.tensor([0] * 20 + [1] * 20), 2)
    usual, other = known.familiar(torch.tensor([[False, False, True, True], [True, False, True, False]])).tolist()
    assert usual > other
    # One more image on and off is counted for each: 21/22 is how probable each of four capsules is in its class.
    assert usual == pytest.approx(4 * torch.tensor(21 / 22).log().item(), abs=1e-5)
    assert other == pytest.approx(torch.tensor((21 / 22) ** 2 * (1 / 22) ** 2).log().item(), abs=1e-4)


def test_a_capsule_network_says_lengths_and_hidden_patterns():
    model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    whole = said(model, images[:30], 7, CPU)
    parse = model.parse(images[:30])
    torch.testing.assert_close(whole.sure, parse.scores.amax(1).detach(), atol=1e-6, rtol=1e-5)
    assert whole.pattern.shape == (30, 16)
    assert torch.equal(whole.pattern, parse.activations[1] > 0.5)
