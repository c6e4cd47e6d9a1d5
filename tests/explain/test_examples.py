"""The images that activate a capsule against a full sort, the classes it serves, and one feature against several."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain.activate import Generated
from gammacaps.explain.examples import classes_served, correlations, features, stand_out, strongest


def network(**changes):
    shape = {"image_shape": (1, 14, 14), "filters": 8, "primary_types": 2, "hidden": (6,), "classes": 3, "decoder": ()}
    model = gammacaps.create("small", **{**shape, "primary_kernel": 3, **changes})
    with torch.no_grad():
        for layer in model.routed:
            layer.weight *= 6
    return model


def activations(model, images, layer):
    with torch.no_grad():
        return model.parse(images).activations[layer].numpy()


@pytest.mark.parametrize("batch", [4, 7, 100])
def test_the_strongest_are_those_of_a_full_sort(batch):
    model, images = network(), torch.rand(30, 1, 14, 14)
    found = strongest(model, images, "hidden 1", count=5, batch=batch)
    everything = activations(model, images, 1)
    for j in range(6):
        best = sorted(range(30), key=lambda m: -everything[m, j])[:5]
        assert found.indices[j].tolist() == best
        np.testing.assert_allclose(found.activations[j].numpy(), everything[best, j], atol=1e-6)
        assert torch.equal(found.images[j], images[best])


def test_of_equal_images_the_first_come_first():
    model, image = network(), torch.rand(1, 1, 14, 14)
    found = strongest(model, image.expand(9, -1, -1, -1), "class", count=4, batch=3)
    assert found.indices.tolist() == [[0, 1, 2, 3]] * 3


def test_some_capsules_in_the_order_asked_for():
    model, images = network(), torch.rand(12, 1, 14, 14)
    everything = strongest(model, images, "hidden 1", count=3)
    some = strongest(model, images, 1, [4, 0], count=3)
    assert some.capsules == [4, 0]
    assert torch.equal(some.indices, everything.indices[[4, 0]])
    json.dumps(some.to_json())
    assert Image.open(io.BytesIO(some._repr_png_())).size[0] > 3 * 56


def test_matrix_capsules_colour_and_more_capsules_than_a_picture_holds():
    model = gammacaps.create("matrix", image_shape=(3, 14, 14), classes=3, filters=8, types=(3, 3))
    found = strongest(model, torch.rand(5, 3, 14, 14), "primary", count=2)
    assert found.indices.shape == (7 * 7 * 8, 2)
    assert Image.open(io.BytesIO(found.png())).size[1] < 32 * 90


@pytest.mark.parametrize("layer", ["hidden 1", "class"])
def test_classes_are_served_by_how_long_their_images_make_a_capsule(layer):
    model = network()
    images, labels = torch.rand(31, 1, 14, 14) * torch.arange(31).view(-1, 1, 1, 1) / 31, torch.arange(31) % 3
    everything = activations(model, images, model.layers.index(layer))
    tau = float(np.median(everything))  # so that some are active and some are not
    found = classes_served(model, images, labels, layer, tau=tau, class_names=("a", "b", "c"), batch=8)
    for j in range(everything.shape[1]):
        own = [everything[labels.numpy() == k, j] for k in range(3)]
        often = [float(np.mean(a > tau)) for a in own]
        means = [float(np.mean(a)) for a in own]
        assert found.active[j].tolist() == pytest.approx(often, abs=0.05)  # one image may be at tau to rounding
        assert found.share[j].tolist() == pytest.approx([m / sum(means) for m in means], abs=1e-5)
        assert found.means[j].tolist() == pytest.approx(means, abs=1e-5)
        assert found.serves[j] == stand_out(found.means)[j]
    assert 0 < found.active.mean() < 1
    json.dumps(found.to_json())
    assert Image.open(io.BytesIO(found._repr_png_())).size[0] > 100


@pytest.mark.parametrize(
    ("means", "serves"),
    [
        ([0.05, 0.90, 0.10, 0.06], [1]),
        ([0.95, 0.40, 0.97, 0.96], [2, 3, 0]),  # all but one: long unless it is that
        ([0.29, 0.26, 0.48, 0.40], [2, 3]),  # never near 1, but longer for these
        ([0.94, 0.97, 0.95, 0.93], []),  # long for all
        ([0.02, 0.03, 0.01, 0.02], []),  # dead
        ([0.50, 0.50, 0.50, 0.50], []),
        ([0.70], []),  # one class alone can't stand out
    ],
)
def test_those_classes_stand_out_that_make_a_capsule_long(means, serves):
    assert stand_out(torch.tensor([means])) == [serves]


def test_capsules_of_a_gamma_network_are_active_for_their_classes_and_not_for_the_others():
    images, labels = gammacaps.load_data("fashion-mini")
    found = classes_served(gammacaps.load("fashion-mini"), images[:200], labels[:200])
    counts = [len(served) for served in found.serves]
    assert sum(0 < count < 10 for count in counts) >= 14  # of 16
    assert len({tuple(served) for served in found.serves}) >= 10


def test_a_rare_class_weighs_as_much_as_a_frequent_one():
    model, image = network(), torch.rand(1, 1, 14, 14)
    labels = torch.tensor([0] * 9 + [2])
    found = classes_served(model, image.expand(10, -1, -1, -1), labels)
    assert found.classes == [0, 2]
    torch.testing.assert_close(found.share, torch.full((6, 2), 0.5))


def generated(*images):
    best = torch.stack(images)
    return Generated(best.mean(0), 0.9, torch.rand(3), best, torch.ones(len(best)), 0.0, 0)


def bars(vertical):
    image = torch.zeros(1, 8, 8)
    image[:, :, 2:6] = 1
    return image if vertical else image.transpose(1, 2)


def noisy(image):
    return (image + 0.1 * torch.rand(image.shape)).clamp(0, 1)


def test_identical_images_are_one_feature():
    found = features(generated(*[bars(True)] * 5))
    assert found.groups == [[0, 1, 2, 3, 4]]
    assert found.correlation == pytest.approx(1)
    assert found.meaning == "One feature: the 5 best images are alike (mean correlation 1.00)."


def test_two_kinds_of_images_are_two_features():
    up, across = bars(True), bars(False)
    found = features(generated(noisy(across), noisy(up), noisy(up), noisy(across), noisy(up)))
    assert found.groups == [[1, 2, 4], [0, 3]]
    assert found.meaning.startswith("2 features: the 5 best images fall into groups")
    # Of the 10 pairs 4 are of one kind; the bars cross, so the others are uncorrelated.
    assert found.correlation == pytest.approx(0.4, abs=0.05)
    json.dumps(found.to_json())


def test_noise_has_no_common_feature():
    found = features(generated(*torch.rand(4, 1, 8, 8)))
    assert len(found.groups) == 4
    assert found.meaning.startswith("No common feature")


def test_one_image_is_one_feature():
    assert features(generated(bars(True))).correlation == 1


def test_correlation_is_numpy_s_and_images_of_one_shade_are_alike_if_equal():
    first, second = torch.rand(3, 2, 5, 5), torch.rand(4, 2, 5, 5)
    found = correlations(first, second)
    for a in range(3):
        for b in range(4):
            assert found[a, b].item() == pytest.approx(np.corrcoef(first[a].flatten(), second[b].flatten())[0, 1])
    black, white = torch.zeros(1, 1, 4, 4), torch.ones(1, 1, 4, 4)
    assert correlations(black, torch.cat((black, white, torch.rand(1, 1, 4, 4)))).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: strongest(network(), x, "clas"), "There is no layer 'clas' .did you mean 'class'"),
        (lambda x, y: strongest(network(), x, "class", [3]), "no capsule 3 in layer 'class': its capsules are 0 to 2"),
        (
            lambda x, y: strongest(network(), x, "class", count=10),
            "of 9 images can be 1 to 9 of them, not 10",
        ),
        (lambda x, y: strongest(network(), x * 2, "class"), "within"),
        (lambda x, y: strongest(gammacaps.create("cnn"), x, "class"), "A CNN has no capsules"),
        (lambda x, y: classes_served(network(), x, y, tau=1.0), "tau must be from 0 to below 1"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call(torch.linspace(0.1, 1, 9 * 196).view(9, 1, 14, 14), torch.arange(9) % 3)
