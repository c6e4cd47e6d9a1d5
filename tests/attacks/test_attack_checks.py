"""Every attack refuses what would give no image, and takes no images for no images."""

import math

import numpy as np
import pytest
import torch

import gammacaps
from gammacaps.attacks import auto_attack, fgsm, grey, noise, pgd, vote_surrogate
from gammacaps.attacks.capsules import push
from gammacaps.attacks.checks import check_attack
from gammacaps.errors import InputError


class Brightness(torch.nn.Module):
    """Three classes by the brightness of the first three pixels."""

    def forward(self, images):
        return images.flatten(1)[:, :3]


MODEL = Brightness()


def on_a_capsule(images, **options):
    capsules, upward = torch.zeros(len(images), dtype=torch.int64), torch.ones(len(images), dtype=torch.bool)
    until, starts = torch.ones(len(images)), options.pop("starts", torch.zeros_like(images))
    model = gammacaps.create("small", filters=4, primary_types=2)
    return push(model, 1, images, capsules, upward, until, starts, **{"step": 1.0, "steps": 2, **options})[0]


ATTACKS = {
    "fgsm": lambda images, labels, **options: fgsm(MODEL, images, labels, **options),
    "pgd": lambda images, labels, **options: pgd(MODEL, images, labels, **{"steps": 2, **options}),
    "noise": lambda images, labels, **options: noise(MODEL, images, labels, **options),
    "grey": lambda images, labels, **options: grey(images, **options),
    "auto": lambda images, labels, **options: auto_attack(MODEL, images, labels, **{"part": "square", **options}),
    "capsules": lambda images, labels, **options: on_a_capsule(images, **options),
}
LABELLED = [name for name in ATTACKS if name not in ("grey", "capsules")]


def batch(count=2):
    return torch.rand(count, 1, 28, 28), torch.arange(count) % 3


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    ("eps", "words"),
    [
        (-0.1, "eps must be a number from 0 to 1, not -0.1"),
        (math.nan, "eps must be a number from 0 to 1, not nan"),
        (math.inf, "eps must be a number from 0 to 1, not inf"),
        (True, "eps must be a number from 0 to 1, not True"),
        (8, "from 0 to 1, the range of a pixel, not 8: if you mean 8/255, give 0.0314"),
    ],
)
def test_a_radius_that_is_none(attack, eps, words):
    with pytest.raises(InputError, match=words):
        ATTACKS[attack](*batch(), eps=eps)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    ("images", "words"),
    [
        (torch.full((2, 1, 28, 28), 1.5), "pixels must be finite and within"),
        (torch.full((2, 1, 28, 28), math.nan), "pixels must be finite and within"),
        (torch.zeros(0, 1, 0, 28), "no pixels"),
    ],
)
def test_images_that_are_none(attack, images, words):
    with pytest.raises(InputError, match=words):
        ATTACKS[attack](images, torch.arange(len(images)), eps=0.1)


# By the check itself: under tests the attacks' annotations are checked before it.
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": torch.zeros(2, 28, 28)}, "expected the four dimensions"),
        ({"images": torch.zeros(0, 28)}, "expected the four dimensions"),
        ({"images": torch.zeros(2, 1, 5, 5, dtype=torch.uint8)}, "expected floats"),
        ({"images": torch.zeros(0, 1, 5, 5, dtype=torch.uint8)}, "expected floats"),
        ({"images": np.zeros((2, 1, 5, 5))}, "expected a float tensor"),
        ({"eps": "0.1"}, "eps must be a number from 0 to 1, not '0.1'"),
        ({"eps": None}, "eps must be a number from 0 to 1, not None"),
        ({"eps": torch.tensor(0.1)}, "eps must be a number from 0 to 1, not tensor"),
        ({"step": "a"}, "step must be a number from 0 to 10000, not 'a'"),
        ({"seed": 1.5}, "seed must be a whole number .* not 1.5"),
        *(
            ({name: value}, f"An attack's {name} must be a whole number from 1 to 1,000,000, not {value!r}")
            for name in ("steps", "restarts", "draws", "queries")
            for value in (2.5, "3", None, 1e9)
        ),
    ],
)
def test_kinds_that_are_none(change, words):
    with pytest.raises(InputError, match=words):
        check_attack(**{"images": torch.rand(2, 1, 5, 5), "eps": 0.1, **change})


def test_numbers_of_numpy_are_numbers():
    check_attack(torch.rand(1, 1, 5, 5), eps=np.float32(0.3), step=np.float64(0.1), steps=np.int64(3), seed=np.uint8(1))


@pytest.mark.parametrize("attack", LABELLED)
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (torch.tensor([0, 3]), "label 1 is 3, but class numbers go from 0 to 2"),
        (torch.tensor([-1, 0]), "label 0 is -1"),
        (torch.tensor([0.0, 1.0]), "labels must be a tensor of whole numbers"),
        (torch.tensor([0]), "2 images need labels"),
    ],
)
def test_labels_that_are_none(attack, labels, words):
    with pytest.raises(InputError, match=words):
        ATTACKS[attack](batch()[0], labels, eps=0.1)


@pytest.mark.parametrize(
    ("attack", "options", "words"),
    [
        *(
            (attack, {name: value}, f"An attack's {name} must be a whole number from 1 to 1,000,000, not {value}")
            for attack, names in (("pgd", ("steps", "restarts")), ("noise", ("draws",)), ("auto", ("queries",)))
            for name in names
            for value in (0, -1, True, 10**30)
        ),
        *(
            (attack, {"step": value}, f"step must be a number from 0 to 10000, not {value}")
            for attack in ("pgd", "capsules")
            for value in (-1.0, math.nan, math.inf, True, 10**300)
        ),
        *(
            ("auto", {"seed": value}, f"seed must be a whole number from 0 to 9223372036854775807, not {value}")
            for value in (-1, False, 2**70)
        ),
        ("pgd", {"norm": "l2", "eps": 1e300}, r"eps must be a number from 0 to 10000, not 1e\+300"),
        ("pgd", {"start": torch.full((2, 1, 28, 28), math.nan)}, "start holds a value that is not a finite number"),
        (
            "capsules",
            {"starts": torch.full((2, 1, 28, 28), math.inf)},
            "starts holds a value that is not a finite number",
        ),
        ("capsules", {"steps": 0}, "steps must be a whole number from 1 to 1,000,000, not 0"),
    ],
)
def test_numbers_that_are_none(attack, options, words):
    with pytest.raises(InputError, match=words):
        ATTACKS[attack](*batch(), **{"eps": 0.1, **options})


@pytest.mark.parametrize("attack", ["pgd", "noise", "auto"])
def test_a_classifier_that_is_none(attack, monkeypatch):
    monkeypatch.setattr(Brightness, "forward", lambda self, images: images)
    with pytest.raises(InputError, match=r"A classifier gives scores \(B, N\), not"):
        ATTACKS[attack](*batch(), eps=0.1)


def test_the_surrogate_of_the_vote_attack_is_attacked_with_the_same_checks():
    surrogate = vote_surrogate(gammacaps.create("small", filters=4, primary_types=2))
    with pytest.raises(InputError, match="eps must be a number from 0 to 1"):
        pgd(surrogate, *batch(), eps=-0.1)
    with pytest.raises(InputError, match="class numbers go from 0 to 9"):
        pgd(surrogate, batch()[0], torch.tensor([3, 10]), eps=0.1)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("eps", [0, 1, 0.3])
def test_what_is_a_radius_gives_images(attack, eps):
    pytest.importorskip("pyautoattack" if attack == "auto" else "torch")
    torch.manual_seed(0)
    images, labels = batch()
    attacked = ATTACKS[attack](images, labels, eps=eps, **({"queries": 5} if attack == "auto" else {}))
    assert ((attacked >= 0) & (attacked <= 1)).all()  # a NaN is not
    if attack != "capsules":  # which gives lengths
        assert (attacked - images).abs().max() <= float(eps) + 1e-6


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_images_stay_no_images(attack):
    images, labels = batch(0)
    attacked = ATTACKS[attack](images, labels, eps=0.1)
    assert attacked.shape == ((0,) if attack == "capsules" else images.shape)
    if attack in ("pgd", "fgsm"):
        assert ATTACKS[attack](images, labels, eps=2.0, norm="l2", targets=labels).shape == images.shape
