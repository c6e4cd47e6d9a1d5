"""Reconstructions: the decoder's own, their errors, and generated inputs beside them."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain import activate_all
from gammacaps.explain.reconstruct import reconstruct


def network(**changes):
    shape = {"image_shape": (1, 14, 14), "filters": 8, "primary_types": 2, "hidden": (6,), "classes": 3}
    return gammacaps.create("small", **{**shape, "primary_kernel": 3, "decoder": (12,), **changes})


@pytest.mark.parametrize("channels", [1, 3])
def test_reconstructions_are_the_decoder_s(channels):
    model = network(image_shape=(channels, 14, 14))
    images, labels = torch.rand(7, channels, 14, 14), torch.tensor([2, 1, 0, 0, 1, 2, 2])
    found = reconstruct(model, images, labels, class_names=("a", "b", "c"), batch=3)
    with torch.no_grad():
        parse = model.parse(images)
        expected = model.decoder(parse.poses[-1], labels)
    torch.testing.assert_close(found.reconstructions, expected)
    assert found.class_names == ["c", "b", "a", "a", "b", "c", "c"]
    for m in range(7):
        error = np.mean((expected[m].numpy() - images[m].numpy()) ** 2)
        assert found.errors[m].item() == pytest.approx(error, rel=1e-4)
    assert found.generated is None
    longest = reconstruct(model, images)
    assert longest.labels == parse.scores.argmax(1).tolist()
    json.dumps(found.to_json(), allow_nan=False)


def test_a_generated_input_stands_beside():
    model = network()
    generated = activate_all(model, "class", starts=2, steps=2, best=1)
    images = torch.rand(3, 1, 14, 14)
    found = reconstruct(model, images, torch.arange(3), generated=generated)
    assert torch.equal(found.generated, torch.stack([one.image for one in generated]))
    assert found.activations == [one.activation for one in generated]
    for m in range(3):
        expected = np.corrcoef(generated[m].image.flatten(), found.reconstructions[m].flatten())[0, 1]
        assert found.likeness[m].item() == pytest.approx(expected, abs=1e-5)
    two, three = (Image.open(io.BytesIO(r.png())) for r in (reconstruct(model, images), found))
    assert three.size[1] > 1.4 * two.size[1]
    assert found._repr_png_() == found.png()
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (lambda: network(decoder=()), {}, "This network has no decoder: create it with decoder="),
        (lambda: gammacaps.create("cnn"), {}, "A CNN has no decoder: use a gamma-capsule network"),
        (lambda: gammacaps.create("matrix"), {}, "A MatrixCapsNet has no decoder"),
        (network, {"generated": []}, "2 images need as many generated inputs beside them, not 0"),
        (network, {"labels": torch.tensor([0, 3])}, "label 1 is 3, but class numbers go from 0 to 2"),
    ],
)
def test_bad_input_is_named(model, options, words):
    with pytest.raises(InputError, match=words):
        reconstruct(model(), torch.rand(2, 1, 14, 14), **options)
