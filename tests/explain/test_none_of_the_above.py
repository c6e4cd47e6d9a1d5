"""None of the above: the images of nothing, the counts of where they fall, and the verdict."""

import io
import json

import pytest
import torch
from PIL import Image

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain.none_of_the_above import images_of_nothing, none_of_the_above, verdict

KINDS = ["uniform noise", "Gaussian noise", "salt and pepper", "black", "grey", "white"]


def network(**changes):
    shape = {"image_shape": (1, 14, 14), "filters": 8, "primary_types": 2, "hidden": (6,), "classes": 4, "decoder": ()}
    return gammacaps.create("small", **{**shape, "primary_kernel": 3, **changes})


def biased_network():
    """A network whose class 2 is active whatever it sees, by its routing bias."""
    model = network()
    with torch.no_grad():
        model.routed[-1].bias[2] = 2.0
    return model


def test_the_images_of_nothing_are_what_they_are_called():
    images = images_of_nothing((3, 14, 15), 50, seed=4)
    assert list(images) == KINDS
    assert all(x.min() >= 0 and x.max() <= 1 and x.shape[1:] == (3, 14, 15) for x in images.values())
    uniform, normal, coin = (images[kind] for kind in KINDS[:3])
    assert uniform.std().item() == pytest.approx(12**-0.5, abs=0.005)
    assert normal.std().item() == pytest.approx(0.24, abs=0.01)  # 0.25, less what was cut off
    assert coin.unique().tolist() == [0, 1]
    assert [images[kind].unique().tolist() for kind in KINDS[3:]] == [[0], [0.5], [1]]
    again, other = images_of_nothing((3, 14, 15), 50, seed=4), images_of_nothing((3, 14, 15), 50, seed=5)
    assert all(torch.equal(images[kind], again[kind]) for kind in KINDS)
    assert not any(torch.equal(images[kind], other[kind]) for kind in KINDS[:3])


@pytest.mark.parametrize("preset", ["small", "matrix", "cnn"])
def test_shares_and_scores_are_counted(preset):
    few = {"cnn": {"filters": (4, 4)}, "matrix": {"filters": 8, "types": (3, 3)}}
    model = (
        network() if preset == "small" else gammacaps.create(preset, image_shape=(1, 14, 14), classes=4, **few[preset])
    )
    others = torch.rand(6, 1, 14, 14) ** 4
    found = none_of_the_above(model, others, count=7, seed=1, batch=5)
    assert found.kinds == [*KINDS, "other images"]
    assert found.images == [7, 7, 7, 1, 1, 1, 6]
    images = {**images_of_nothing((1, 14, 14), 7, 1), "other images": others}
    for row, kind in enumerate(found.kinds):
        with torch.no_grad():
            scores = [model(image[None])[0] for image in images[kind]]
        if preset == "cnn":
            scores = [s.softmax(0) for s in scores]
        taken = [int(s.argmax()) for s in scores]
        assert found.shares[row].tolist() == pytest.approx([taken.count(k) / len(taken) for k in range(4)])
        assert found.scores[row].item() == pytest.approx(sum(s.max().item() for s in scores) / len(taken), abs=1e-5)
    json.dumps(found.to_json(), allow_nan=False)


def test_a_class_that_is_always_active_is_found():
    found = none_of_the_above(biased_network(), count=20, class_names=("cat", "dog", "fox", "hen"))
    assert found.classes == [2]
    assert found.perhaps == []
    assert not found.low
    assert found.meaning.startswith(
        "fox stands for none of the above: it takes 100% of the images that show nothing, and at least half in 6 of 6"
    )


def test_it_shows_itself():
    png = none_of_the_above(network(), count=5)._repr_png_()
    width, height = Image.open(io.BytesIO(png)).size
    assert width > height > 100
    assert len(png) < 30_000


def test_a_low_score_is_told():
    model = biased_network()
    with torch.no_grad():
        for layer in model.routed:
            layer.weight *= 0.01
        model.routed[-1].bias.fill_(0.01)
    found = none_of_the_above(model, count=5)
    assert found.scores.max() < 0.5
    assert found.low
    assert "low: no class is truly active" in found.meaning


def shares(*rows):
    return torch.tensor(rows, dtype=torch.float32)


SIX = (0.6, 0.1, 0.1, 0.1, 0.1)
ELSE = (0.1, 0.3, 0.2, 0.2, 0.2)
ALL = (1.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("table", "sure", "perhaps"),
    [
        (shares(SIX, SIX, ELSE), [0], []),  # half in two of three kinds
        (shares(SIX, ELSE, ELSE), [], []),
        (shares(ALL, ALL, ELSE, ELSE), [], [0]),  # much, but in half of the kinds only
        (shares(SIX, SIX, SIX, SIX, ELSE, ELSE), [0], []),
        (shares(ELSE, ELSE), [], []),
        (shares((0.6, 0.4), (0.7, 0.3)), [], []),  # of two classes one must have more than half
        (shares((1.0, 0.0), (1.0, 0.0), (0.4, 0.6)), [0], []),
    ],
)
def test_the_verdict(table, sure, perhaps):
    assert verdict(table) == (sure, perhaps)


def test_the_same_seed_gives_the_same_answer():
    model = network()
    first, again = (none_of_the_above(model, count=10, seed=2) for _ in range(2))
    assert first.to_json() == again.to_json()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"count": 0}, "count must be at least 1, not 0"),
        ({"seed": -1}, "seed must be from 0 to 2147483647, not -1"),
        ({"others": torch.rand(2, 1, 28, 28)}, r"takes images of shape \(B, 1, 14, 14\), not \(2, 1, 28, 28\)"),
        ({"others": torch.full((2, 1, 14, 14), 2.0)}, "The other images: image 0 is 2"),
        ({"class_names": ("a",)}, "4 classes need 4 names, not 1"),
    ],
)
def test_bad_input_is_named(options, words):
    with pytest.raises(InputError, match=words):
        none_of_the_above(network(), **options)
