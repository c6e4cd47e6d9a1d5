"""How concentrated filters are, by cases worked out by hand, and their picture."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain.filters import first_filters, largest_tenth, participation
from gammacaps.explain.pictures import dark_paper


def one_hot(size=9):
    weights = torch.zeros(1, 1, size, size)
    weights[0, 0, 2, 3] = -0.7
    return weights


@pytest.mark.parametrize("size", [2, 3, 5, 9, 10])  # a tenth of 4, 9, 25 and 81 weights is no whole number
def test_a_flat_filter_and_a_single_weight(size):
    flat = torch.full((1, 1, size, size), -0.3)
    assert largest_tenth(flat).item() == pytest.approx(0.1)
    assert participation(flat).item() == pytest.approx(1)
    if size >= 4:
        assert largest_tenth(one_hot(size)).item() == pytest.approx(1)
        assert participation(one_hot(size)).item() == pytest.approx(1 / size**2)


def test_worked_out_by_hand():
    # Ten weights: the largest tenth is the 6 of a sum of 15; squares sum to 45, fourth powers to 36 * 36 + 9.
    weights = torch.tensor([1.0, -6, 1, 1, -1, 1, 1, 1, 1, 1]).view(1, 1, 2, 5)
    assert largest_tenth(weights).item() == pytest.approx(6 / 15)
    assert participation(weights).item() == pytest.approx(45**2 / (10 * (1296 + 9)))


def test_the_scale_of_the_weights_does_not_matter():
    weights = torch.randn(4, 2, 5, 5)
    for measure in (largest_tenth, participation):
        torch.testing.assert_close(measure(weights), measure(weights * 1e-30), rtol=1e-4, atol=0)
    zeros = torch.zeros(1, 1, 9, 9)
    assert (largest_tenth(zeros).item(), participation(zeros).item()) == (pytest.approx(0.1), 1)


def test_weights_as_at_the_start_hold_a_fifth():
    weights = torch.rand(200, 1, 20, 20) * 2 - 1
    assert largest_tenth(weights).mean().item() == pytest.approx(0.19, abs=0.005)  # 1 - 0.9^2
    assert participation(weights).mean().item() == pytest.approx(5 / 9, abs=0.01)


@pytest.mark.parametrize(
    ("preset", "shape", "count"),
    [("small", (1, 28, 28), 16), ("matrix", (3, 16, 16), 64), ("cnn", (2, 12, 12), 32)],
)
def test_every_network_has_filters_to_look_at(preset, shape, count):
    model = gammacaps.create(preset, image_shape=shape)
    found = first_filters(model)
    assert found.weights.shape[:2] == (count, shape[0])
    assert found.mean_largest_tenth == pytest.approx(found.largest_tenth.mean().item())
    assert not found.weights.requires_grad
    assert f"{found.mean_largest_tenth:.0%} of its absolute weight" in found.meaning
    json.dumps(found.to_json(), allow_nan=False)
    assert len(found.png()) < 100_000
    assert found._repr_png_() == found.png()


def test_colours_are_signs_and_each_filter_has_its_own_scale():
    model = nn.Sequential(nn.Conv2d(1, 2, 2))
    with torch.no_grad():
        model[0].weight[0] = torch.tensor([[[0.0, 5.0], [-5.0, 0.0]]])
        model[0].weight[1] = torch.tensor([[[0.01, 0.0], [0.0, 0.0]]])
    pixels = np.asarray(Image.open(io.BytesIO(first_filters(model).png())).convert("RGB"))
    first, second = pixels[3:39, 3:39], pixels[3:39, 42:78]  # 36 pixels each, 3 between
    assert first[9, 27].tolist() == [0xD5, 0x5E, 0x00]
    assert first[27, 9].tolist() == [0x00, 0x72, 0xB2]
    assert first[9, 9].tolist() == [255, 255, 255]
    assert second[9, 9].tolist() == [0xD5, 0x5E, 0x00]
    with dark_paper():
        dark = np.asarray(Image.open(io.BytesIO(first_filters(model).png())).convert("RGB"))
    assert dark[3 + 9, 3 + 9].tolist() == [0x15, 0x17, 0x1A]  # 0 has the paper's colour
    assert dark[3 + 9, 3 + 27].tolist() == [0xD5, 0x5E, 0x00]


def test_a_network_without_convolution_is_refused():
    with pytest.raises(InputError, match="A Linear has no convolution, so no filters"):
        first_filters(nn.Linear(3, 3))
