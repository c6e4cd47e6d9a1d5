import math
import re

import numpy as np
import pytest
import torch

from gammacaps.data import check_images
from gammacaps.errors import InputError

GOOD = torch.linspace(0, 1, 24).reshape(2, 3, 2, 2)


def test_good_ones_pass() -> None:
    check_images(GOOD)
    check_images(GOOD.double().requires_grad_(), torch.tensor([0, 4]), 5)
    check_images(GOOD.half(), torch.tensor([0, 255], dtype=torch.uint8))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "is nan at channel 2, row 0, column 1, .* fix that image or leave it out"),
        (math.inf, "is inf at"),
        (255.0, "is 255 at channel 2, row 0, column 1, .* bytes by dividing by 255"),
        (-0.5, "is -0.5 at .* undoing the normalisation"),
    ],
)
def test_first_bad_pixel_is_named(value: float, words: str) -> None:
    images = GOOD.clone()
    images[1, 2, 0, 1] = images[1, 2, 1, 1] = value
    with pytest.raises(InputError, match=f"The images: image 1 {words}"):
        check_images(images)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((1, 1, 2, 2)), "expected a float tensor (N, C, H, W), got a ndarray"),
        (
            torch.zeros(1, 1, 2, 2, dtype=torch.uint8),
            "expected floats in [0, 1], got torch.uint8; bytes become",
        ),
        (torch.zeros(1, 2, 2), "expected the four dimensions (N, C, H, W), got the shape (1, 2, 2)"),
        (torch.zeros(0, 1, 2, 2), "there are no pixels in the shape (0, 1, 2, 2)"),
    ],
)
def test_wrong_images(images: object, words: str) -> None:
    with pytest.raises(InputError, match=f"^mine: {re.escape(words)}"):
        check_images(images, where="mine")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1], "labels must be a tensor of whole numbers, got list"),
        (torch.zeros(2), "labels must be a tensor of whole numbers, got torch.float32; use labels.long()"),
        (torch.zeros(2, dtype=torch.bool), "labels must be a tensor of whole numbers, got torch.bool"),
        (torch.zeros(3, dtype=torch.int64), "2 images need labels of the shape (2,), got (3,)"),
        (torch.zeros(2, 1, dtype=torch.int64), "2 images need labels of the shape (2,), got (2, 1)"),
        (torch.tensor([0, -1]), "label 1 is -1, but class numbers go from 0 to 4"),
        (torch.tensor([5, 7]), "label 0 is 5, but class numbers go from 0 to 4"),
    ],
)
def test_wrong_labels(labels: object, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        check_images(GOOD, labels, 5)
    check_images(GOOD, torch.tensor([0, 10**6]))  # no class count, no upper end
    with pytest.raises(InputError, match="label 0 is -3, but class numbers go from 0 on"):
        check_images(GOOD, torch.tensor([-3, 0]))
