"""Maps against loops over single images, and what their pictures hold."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain.maps import activation_map, class_map, confusion_map, coupling_map

NAMES = ("cat", "dog", "fox")


def network(**changes):
    shape = {"image_shape": (1, 14, 14), "filters": 8, "primary_types": 2, "hidden": (6,), "classes": 3, "decoder": ()}
    model = gammacaps.create("small", **{**shape, "primary_kernel": 3, **changes})
    with torch.no_grad():
        for layer in model.routed:
            layer.weight *= 6  # so that capsules depend on the image
    return model


def matrix_network():
    return gammacaps.create("matrix", image_shape=(1, 14, 14), classes=3, filters=8, types=(3, 4))


def some(count=17, channels=1):
    return torch.rand(count, channels, 14, 14), torch.arange(count) % 3


def looked_at(result):
    """A result's picture can be read and its JSON written, and in a notebook it shows itself."""
    json.dumps(result.to_json(), allow_nan=False)
    png = result._repr_png_()
    assert len(png) < 60_000
    image = Image.open(io.BytesIO(png))
    assert min(image.size) > 50
    return image


def each(model, images, layer):
    """Activations image by image."""
    with torch.no_grad():
        return np.stack([model.parse(image[None]).activations[layer][0].numpy() for image in images])


@pytest.mark.parametrize(
    ("make", "layer", "index"),
    [(network, "hidden 1", 1), (lambda: network(hidden=(5, 4)), 2, 2), (matrix_network, "class", 3)],
)
def test_class_means_are_those_of_the_images_one_by_one(make, layer, index):
    model = make()
    images, labels = some()
    found = class_map(model, images, labels, layer, class_names=NAMES, batch=5)
    single = each(model, images, index)
    for j in range(single.shape[1]):
        for k in range(3):
            mine = [single[m, j] for m in range(17) if labels[m] == k]
            assert found.means[j, k].item() == pytest.approx(sum(mine) / len(mine), abs=1e-5)
    assert found.layer == model.layers[index]
    assert found.class_names == list(NAMES)
    assert json.dumps(found.to_json(), allow_nan=False)


def test_the_picture_of_class_means():
    images, labels = some()
    looked_at(class_map(network(), images, labels, class_names=NAMES))


def test_classes_without_images_have_no_column():
    images, labels = some(6)
    found = class_map(network(), images, labels.clamp(min=1), class_names=NAMES)
    assert found.classes == [1, 2]
    assert found.class_names == ["dog", "fox"]
    assert found.means.shape == (6, 2)


def test_an_activation_map_shows_the_images_it_names():
    model = network(image_shape=(3, 14, 14))
    images, labels = some(40, channels=3)
    found = activation_map(model, images, labels, label=2, count=10, class_names=NAMES, seed=3)
    single = each(model, images, 1)
    np.testing.assert_allclose(found.shuffled.numpy(), single[found.shuffled_indices], atol=1e-5)
    np.testing.assert_allclose(found.alone.numpy(), single[found.alone_indices], atol=1e-5)
    assert len(set(found.shuffled_indices.tolist())) == 10
    assert len(set(labels[found.shuffled_indices].tolist())) == 3
    assert set(labels[found.alone_indices].tolist()) == {2}
    assert found.d_alone == pytest.approx(single[found.alone_indices].std(0).max(), abs=1e-5)
    assert found.class_name == "fox"
    looked_at(found)


def test_an_activation_map_is_named_by_its_seed_and_takes_what_there_is():
    images, labels = some(12)
    model = network()
    first, again, other = (activation_map(model, images, labels, count=5, seed=s) for s in (0, 0, 1))
    assert torch.equal(first.shuffled_indices, again.shuffled_indices)
    assert torch.equal(first.shuffled, again.shuffled)
    assert not torch.equal(first.shuffled_indices, other.shuffled_indices)
    everything = activation_map(model, images, labels)
    assert len(everything.shuffled) == 12
    assert len(everything.alone) == 4


def test_capsules_of_a_type_are_averaged_over_their_places():
    images, labels = some(9)
    model = matrix_network()
    found = activation_map(model, images, labels, "hidden 1", by_type=True)
    assert found.unit == "capsule type"
    assert found.shuffled.shape == (9, 3)  # as the paper's 16 columns for EM routing
    single = each(model, images, 1)
    types = np.stack([single[:, t::3].mean(1) for t in range(3)], axis=1)
    np.testing.assert_allclose(found.shuffled.numpy(), types[found.shuffled_indices], atol=1e-5)
    assert class_map(model, images, labels, "hidden 2", by_type=True).means.shape == (4, 3)
    assert class_map(model, images, labels, "class", by_type=True).means.shape == (3, 3)
    assert class_map(network(), images, labels, "primary", by_type=True).means.shape == (2, 3)
    assert class_map(network(), images, labels, "hidden 1", by_type=True).means.shape == (6, 3)


@pytest.mark.parametrize(("make", "layer"), [(network, 1), (network, 0), (matrix_network, 0), (matrix_network, 2)])
def test_couplings_are_weighted_by_activation(make, layer):
    model = make()
    images, _ = some(7)
    found = coupling_map(model, images, layer, batch=3)
    up, active = 0.0, 0.0
    with torch.no_grad():
        for image in images:
            parse = model.parse(image[None])
            a, c = parse.activations[layer][0].double(), parse.couplings[layer][0].double()
            up = up + a[:, None] * c
            active = active + a
    torch.testing.assert_close(found.fed.double(), up / 7, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.couplings.double(), up / active[:, None], atol=1e-5, rtol=1e-4)
    reach = found.couplings.sum(1) > 0.5  # a matrix capsule outside every window leads nowhere
    torch.testing.assert_close(found.couplings.sum(1), reach.float(), atol=1e-4, rtol=0)
    assert reach.any()


def test_couplings_lead_to_the_classes_unless_told():
    model = network(hidden=(5, 4))
    found = coupling_map(model, some()[0], class_names=NAMES)
    assert (found.layer, found.above) == ("hidden 2", "class")
    assert found.couplings.shape == (4, 3)
    assert found.names == list(NAMES)
    lower = coupling_map(model, some()[0], "hidden 1", class_names=NAMES)
    assert lower.names == ["0", "1", "2", "3"]  # capsules, no classes
    looked_at(found)


def test_a_confusion_matrix_says_what_is_mixed_up():
    # The paper's case: a class that is never predicted.
    found = confusion_map([[8, 2, 0], [1, 9, 0], [6, 4, 0]], NAMES)
    assert found.never == [2]
    assert found.meaning == (
        "The most frequent mistake: fox taken for cat (6 of 10 images). Never predicted, so not learned: fox."
    )
    looked_at(found)
    assert confusion_map([[8, 0], [0, 9]]).meaning == "No image was taken for another class."
    assert confusion_map([[8, 0], [0, 0]]).never == []  # no images of class 1, so nothing to predict


def test_a_picture_of_a_confusion_matrix_is_darkest_on_its_diagonal():
    picture = np.asarray(looked_at(confusion_map(torch.eye(4, dtype=torch.int64).mul(50).tolist())).convert("L"))
    dark = picture < 70
    blocks = dark[:, 1:] & dark[:, :-1] & np.pad(dark[1:, 1:], ((0, 1), (0, 0)))  # more than letters and lines
    rows, columns = blocks.nonzero()
    assert np.corrcoef(rows, columns)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: class_map(network(), x, y, "hiden 1"), "no layer 'hiden 1' .did you mean 'hidden 1'"),
        (lambda x, y: class_map(gammacaps.create("cnn"), x, y), "A CNN has no capsules"),
        (lambda x, y: coupling_map(gammacaps.create("cnn"), x), "A CNN has no capsules"),
        (lambda x, y: class_map(network(), x, y + 1), "label 2 is 3, but class numbers go from 0 to 2"),
        (lambda x, y: class_map(network(), x, y, class_names=("a", "b")), "3 classes need 3 names, not 2"),
        (lambda x, y: class_map(network(), x, y, batch=0), "A batch has at least 1 image, not 0"),
        (lambda x, y: activation_map(network(), x, y, label=7), "needs images of class 7, and there are none"),
        (lambda x, y: activation_map(network(), x, y, count=0), "count must be at least 1, not 0"),
        (lambda x, y: coupling_map(network(), x, "class"), "none is above 'class': use primary, hidden 1"),
        (lambda x, y: confusion_map([[1, 2]]), r"A confusion matrix is square.*not \(1, 2\)"),
    ],
)
def test_what_can_t_be_mapped_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call(*some())
