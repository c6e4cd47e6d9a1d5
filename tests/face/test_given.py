"""What `gammacaps.check` says of labels, images and models that it can't use."""

import inspect

import numpy as np
import pytest
import torch
from face_networks import cnn
from torch import nn

import gammacaps
from gammacaps.errors import InputError

check = inspect.unwrap(gammacaps.check)  # past the types that tests check
IMAGES = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
LABELS = [0, 1, 2, 9]
QUICK = {"attacks": "fgsm", "checks": False, "quiet": True}


class Gives(nn.Module):
    """A CNN whose scores are made into something else."""

    def __init__(self, change):
        super().__init__()
        self.cnn, self.change = cnn(), change

    def forward(self, images):
        return self.change(self.cnn(images))


class Output:
    def __init__(self, logits):
        self.logits = logits


@pytest.mark.parametrize(
    "labels", [LABELS, tuple(LABELS), np.array(LABELS), np.array(LABELS, np.uint16), [torch.tensor(k) for k in LABELS]]
)
def test_labels_may_be_a_list_or_an_array(labels):
    model = cnn()
    found = check(model, IMAGES, labels, **QUICK)
    assert found["attacks"] == [
        {**row, "seconds": found["attacks"][0]["seconds"]}
        for row in check(model, IMAGES, torch.tensor(LABELS), **QUICK)["attacks"]
    ]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1, 2], r"4 images need labels of the shape \(4,\), got \(3,\)"),
        (["coat", "bag"], r"not \['coat', 'bag'\]: give class numbers from 0 on"),
        ([[1], [2, 3]], "Labels are whole numbers, one for each image"),
        (np.array([0.5, 1, 2, 3]), "Labels are whole numbers, one for each image"),
        (None, "in a tensor, a list or an array, not None"),
        (torch.tensor([0.0, 1, 2, 3]), "got torch.float32; use labels.long"),
        ([0, 1, 2, 10], "label 3 is 10, but class numbers go from 0 to 9"),
        ([0, 1, 2, -1], "label 3 is -1, but class numbers go from 0 on"),
    ],
)
def test_other_labels_are_one_sentence(labels, words):
    with pytest.raises(InputError, match=words):
        check(cnn(), IMAGES, labels, **QUICK)


@pytest.mark.parametrize(
    ("model", "images", "words"),
    [
        (
            cnn(),
            torch.zeros(4, 1, 32, 32),
            r"shape \(B, 1, 32, 32\): it takes \(B, 1, 28, 28\), so give images of",
        ),
        (
            cnn(),
            torch.zeros(4, 3, 28, 28),
            r"shape \(B, 3, 28, 28\): it takes \(B, 1, 28, 28\), so give images of",
        ),
        (cnn(), torch.zeros(4, 28, 28, 1), r"channels come last, so put them first by images.permute\(0, 3, 1, 2\)"),
        (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(5, 2)),
            IMAGES,
            "convolution takes 3 channels",
        ),
        (gammacaps.create("small"), torch.zeros(4, 1, 32, 32), r"\(B, 1, 28, 28\), not \(4, 1, 32, 32\): resize them"),
        (Gives(lambda s: s.nothing), IMAGES, r"can't take .* \(AttributeError: 'Tensor' .*\): give images like those"),
        (
            cnn().double(),
            IMAGES,
            r"weights are float64 and the images float32: give both as float32, by model.float",
        ),
        (cnn(), IMAGES.double(), "weights are float32 and the images float64: give both as float32"),
        (Gives(lambda s: (s, s)), IMAGES, r"of type tuple, not a tensor .*give lambda images: model\(images\)\[0\] in"),
        (Gives(lambda s: {"logits": s}), IMAGES, r'of type dict, .*give lambda images: model\(images\)\["logits"\] in'),
        (Gives(Output), IMAGES, r"of type Output, not a tensor .*give lambda images: model\(images\)\.logits in"),
        (
            lambda images: images.numpy(),
            IMAGES,
            "of type ndarray, .*wrap it in a function that gives one, worked out",
        ),
        (Gives(lambda s: s[:, 0]), IMAGES, r"float32 of shape \(2,\) for 2 images, not scores \(B, N\)"),
        (Gives(lambda s: s[:1]), IMAGES, r"float32 of shape \(1, 10\) for 2 images, not scores \(B, N\)"),
        (Gives(lambda s: s.round().long()), IMAGES, r"gives int64 of shape \(2, 10\) for 2 images, not scores"),
        (Gives(lambda s: s / 0 * 0), IMAGES, "scores are NaN"),
        (nn.Linear, IMAGES, r"is a network, not its class: give Linear\(...\)"),
    ],
)
def test_a_model_or_images_that_do_not_go_together_are_one_sentence(model, images, words):
    with pytest.raises(InputError, match=words) as caught:
        check(model, images, LABELS, **QUICK)
    assert "\n" not in str(caught.value)


class Picky(nn.Module):
    """Takes images of all shapes, but none that is brighter than this."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, images):
        if images.max() > self.most:
            raise ValueError("too bright")
        return images.flatten(1)[:, :10]


class OneShape(Picky):
    def forward(self, images):
        assert images.shape[1:] == (1, 28, 28), "another shape"
        return super().forward(images)


@pytest.mark.parametrize("kind", [Picky, OneShape])
def test_a_model_that_fails_by_what_images_show_is_not_told_of_their_shape(kind):
    with pytest.raises(InputError, match=r"\(ValueError: too bright\): give images like those") as caught:
        check(kind(0.5), IMAGES, LABELS, **QUICK)
    assert "it takes" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
        MemoryError("There is not enough memory to route this batch: use a smaller one."),
    ],
)
@pytest.mark.parametrize("side", [28, 32])
def test_memory_that_runs_out_is_not_blamed_on_the_shape(error, side):
    def model(images):
        if images.shape[2] == side:
            raise error
        raise ValueError("another shape")

    with pytest.raises(type(error)) as caught:
        check(model, IMAGES, LABELS, **QUICK)
    assert caught.value is error


def test_an_error_in_a_model_keeps_its_cause():
    with pytest.raises(InputError) as caught:
        check(Gives(lambda s: s.nothing), IMAGES, LABELS, **QUICK)
    assert isinstance(caught.value.__cause__, AttributeError)
