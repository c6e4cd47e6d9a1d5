"""The deep encoder: its formulas, its sizes, and where its capsules start."""

import dataclasses
import json

import pytest
import torch

from gammacaps.data import load_set
from gammacaps.errors import InputError
from gammacaps.models import create
from gammacaps.models.folder import load, save
from gammacaps.nn import DeepEncoder

FEW = {"filters": 2, "primary_types": 2, "hidden": (4,), "decoder": ()}


@pytest.mark.parametrize(("activation", "formula"), [("relu", torch.relu), ("silu", lambda x: x * torch.sigmoid(x))])
def test_the_encoder_is_its_formulas(activation, formula):
    encoder = DeepEncoder(2, 3, (9, 13), depth=2, activation=activation).double()
    x = features = torch.rand(2, 2, 9, 13, dtype=torch.float64)
    weights = list(encoder.parameters())
    assert len(weights) == 4  # 9x13 is 5x7 after one stage, which is small enough
    for weight, bias in zip(weights[::2], weights[1::2], strict=True):
        bias.data.uniform_(-0.1, 0.1)
        features = formula(torch.nn.functional.conv2d(features, weight, bias, padding=1))
    rows = [features[:, :, 2 * row : 2 * row + 2] for row in range(5)]  # the last of one row alone
    pooled = [[part[..., 2 * n : 2 * n + 2].amax((-2, -1)) for n in range(7)] for part in rows]
    expected = torch.stack([torch.stack(row, dim=-1) for row in pooled], dim=-2)
    torch.testing.assert_close(encoder(x), expected)
    assert encoder.grid == (5, 7)
    assert encoder.channels == 3


@pytest.mark.parametrize(
    ("size", "grid", "widths"),
    [
        ((28, 28), (7, 7), [2, 2, 4, 4]),
        ((32, 32), (8, 8), [2, 2, 4, 4]),
        ((64, 64), (8, 8), [2, 2, 4, 4, 8, 8]),
        ((5, 5), (3, 3), [2, 2]),  # one stage at the least
        ((30, 129), (1, 5), [2, 2, 4, 4, 8, 8, 8, 8, 8, 8]),  # at most four times as wide as at first
    ],
)
def test_the_image_is_halved_until_no_side_is_longer_than_8(size, grid, widths):
    encoder = DeepEncoder(1, 2, size)
    features = encoder(torch.rand(1, 1, *size))
    assert encoder.grid == grid
    assert features.shape == (1, widths[-1], *grid)
    assert [weight.shape[0] for weight in list(encoder.parameters())[::2]] == widths


def test_depth_and_kernel_are_those_of_its_convolutions():
    encoder = DeepEncoder(1, 4, (28, 28), kernel=5, depth=3)
    weights = list(encoder.parameters())[::2]
    assert [tuple(weight.shape) for weight in weights[:2]] == [(4, 1, 5, 5), (4, 4, 5, 5)]
    assert len(weights) == 6
    assert all(weight.is_contiguous(memory_format=torch.channels_last) for weight in weights)


def test_the_start_is_kaiming_s():
    for name, weight in DeepEncoder(16, 32, (28, 28)).named_parameters():
        if name.endswith("bias"):
            assert (weight == 0).all()
        else:
            assert weight.square().mean().item() == pytest.approx(2 / weight[0].numel(), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("changes", [{}, {"activation": "silu"}, {"routing": "rba"}, {"filters": 16, "hidden": (16,)}])
def test_no_capsule_starts_always_on_or_silent(seed, changes):
    images = load_set("fashion-mini", "train").images[:100]
    torch.manual_seed(seed)
    with torch.no_grad():
        primary, hidden, top = create("deep", decoder=(), **changes).parse(images, couplings=False).activations
    assert 0.4 < primary.mean() < 0.95
    assert 0.15 < hidden.mean() < 0.85
    assert (hidden.amin(dim=0) < 0.9).all()  # no capsule is on for every image
    assert hidden.std(dim=0).mean() > 0.05  # and they differ from image to image
    assert top.amax() > 0.05
    assert top.amax() < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("image_shape", [(3, 32, 32), (1, 64, 48), (2, 5, 5)])
def test_colour_and_other_sizes(image_shape):
    model = create("deep", image_shape=image_shape, classes=3, **FEW)
    images = torch.rand(2, *image_shape, requires_grad=True)
    scores = model(images)
    scores.sum().backward()
    assert scores.shape == (2, 3)
    assert images.grad is not None
    assert images.grad.abs().sum() > 0


def test_the_preset_fits_into_8_mb_in_half_precision():
    model = create("deep")
    assert model.parse(torch.rand(1, 1, 28, 28)).activations[0].shape == (1, 5 * 5 * 32)
    assert sum(2 * weight.numel() for weight in model.parameters()) < 8e6


def test_it_is_stored_like_any_other(tmp_path):
    model = create("deep", activation="silu", **FEW).eval()
    save(model, tmp_path / "run")
    again, images = load(tmp_path / "run"), torch.rand(2, 1, 28, 28)
    assert again.config == model.config
    assert torch.equal(again(images), model(images))


def test_a_config_of_before_the_deep_encoder_still_loads(tmp_path):
    model = create("paper", filters=4, primary_types=2, hidden=(3,), decoder=())
    save(model, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    stored = json.loads(path.read_text())
    for name in ("depth", "activation"):
        del stored["model"][name]
    path.write_text(json.dumps(stored))
    assert dataclasses.asdict(load(tmp_path / "run").config) == dataclasses.asdict(model.config)


@pytest.mark.parametrize(
    ("preset", "changes", "words"),
    [
        ("deep", {"kernel": 4}, "kernel must be odd"),
        ("deep", {"stride": 2}, "stride 2 is not for the deep encoder"),
        ("deep", {"depth": 101}, "depth must be at most 100"),
        ("deep", {"activation": "gelu"}, "activation must be one of 'relu', 'silu'"),
        ("deep", {"image_shape": (1, 4, 4)}, "2x2 is smaller than a 3x3 kernel"),
        ("paper", {"depth": 3}, "depth 3 is for the deep encoder alone"),
        ("residual", {"activation": "silu"}, "activation silu is for the deep encoder alone"),
    ],
)
def test_what_does_not_fit_the_encoder_is_refused(preset, changes, words):
    with pytest.raises(InputError, match=words):
        create(preset, **changes)


def test_a_cnn_can_have_the_very_same_stem():
    capsules, cnn = create("deep", image_shape=(3, 40, 30)), create("cnn", stem="deep", image_shape=(3, 40, 30))
    ours, its = capsules.encoder.state_dict(), cnn.layers[0].state_dict()
    assert {name: weight.shape for name, weight in ours.items()} == {name: weight.shape for name, weight in its.items()}
    cnn.layers[0].load_state_dict(ours)
    images = torch.rand(2, 3, 40, 30)
    assert torch.equal(cnn.encode(images), capsules.encoder(images).flatten(1))
    assert cnn(images).shape == (2, 10)


def test_madry_s_cnn_is_stored_as_before(tmp_path):
    model = create("cnn", filters=(2, 3), width=4)
    assert list(model.state_dict())[:4] == ["layers.0.weight", "layers.0.bias", "layers.3.weight", "layers.3.bias"]
    save(model, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    stored = json.loads(path.read_text())
    for name in ("stem", "deep_filters"):
        del stored["model"][name]
    path.write_text(json.dumps(stored))
    assert load(tmp_path / "run").config == model.config


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stem": "deep", "filters": (4, 4)}, "with the deep one give deep_filters"),
        ({"deep_filters": 16}, "deep_filters is for the deep stem"),
        ({"stem": "residual"}, "stem must be one of 'madry', 'deep'"),
    ],
)
def test_a_stem_s_option_is_refused_for_the_other(changes, words):
    with pytest.raises(InputError, match=words):
        create("cnn", **changes)
