"""Larger images, more classes, more layers: networks that would stay at chance with the paper's initial weights."""

import pytest
import torch
from former_small import CONVOLUTION, FORMER_SMALL

from gammacaps.models import create
from gammacaps.nn import Convolution
from gammacaps.nn.vector import PAPER_STD
from gammacaps.training.losses import margin_loss

COLOUR = {"image_shape": (3, 32, 32), "filters": 8, "primary_types": 4, "decoder": ()}
SHALLOW = {**COLOUR, **CONVOLUTION, "filters": 16}


def pictures(classes, image_shape, count):
    """Smooth random pictures, one kind a class, with noise; a random kind for each image."""
    channels, height, width = image_shape
    coarse = torch.rand(classes, channels, 6, 6)
    labels = torch.randint(classes, (count,))
    smooth = torch.nn.functional.interpolate(coarse[labels], size=(height, width), mode="bilinear")
    return 0.8 * smooth + 0.2 * torch.rand(count, *image_shape), labels


def right_after(model, count, steps):
    """Share of one batch that is right after some steps on it."""
    images, labels = pictures(model.config.classes, model.config.image_shape, count)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        loss = margin_loss(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (model(images).argmax(1) == labels).float().mean().item()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "changes", "images", "steps"),
    [
        ("small", {**SHALLOW}, 16, 30),
        ("small", {**SHALLOW, "hidden": (16, 16, 16)}, 16, 40),
        ("small", {**SHALLOW, "hidden": (24, 24), "classes": 100}, 16, 50),
        ("deep", {**COLOUR, "hidden": (24, 24), "classes": 100}, 16, 50),
        ("deep", {**COLOUR, "hidden": (16, 16, 16)}, 16, 50),
        ("deep", {**COLOUR, "filters": 4, "image_shape": (1, 48, 64), "hidden": (16,), "activation": "silu"}, 16, 30),
        ("residual", {**COLOUR, "hidden": (24, 24), "classes": 100}, 16, 50),
        ("residual", {**COLOUR, "hidden": (24, 24), "classes": 100, "routing": "rba"}, 16, 50),
        ("residual", {**COLOUR, "filters": 4, "hidden": (32,), "classes": 1000}, 8, 25),
        ("residual", {**COLOUR, "filters": 4, "image_shape": (3, 96, 96), "hidden": (16,)}, 16, 15),
        ("residual", {**COLOUR, "filters": 4, "image_shape": (1, 48, 64), "hidden": (16,)}, 16, 20),
    ],
    ids=[
        "colour",
        "3 hidden",
        "100",
        "deep 100",
        "deep 3 hidden",
        "deep 48x64",
        "residual 100",
        "residual 100 rba",
        "1000",
        "96x96",
        "48x64",
    ],
)
def test_a_new_size_learns_within_a_few_dozen_steps(preset, changes, images, steps):
    assert right_after(create(preset, **changes), images, steps) >= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"hidden": (16, 16, 16)}, {"hidden": (24, 24), "classes": 100}])
def test_the_paper_s_start_would_leave_it_at_chance(changes):
    model = create("small", **{**SHALLOW, **changes})
    for layer in model.routed:
        layer.start(PAPER_STD)
    model.primary.convolution.reset_parameters()
    assert right_after(model, 16, 40) <= 0.45


@pytest.mark.slow
@pytest.mark.parametrize("classes", [10, 5])
@pytest.mark.parametrize("changes", [{}, {**FORMER_SMALL, "hidden": (16,)}], ids=["paper", "smaller"])
def test_the_paper_s_sizes_keep_the_paper_s_weights(changes, classes):
    model = create("paper", classes=classes, **changes)
    for layer in model.routed:
        # A normal distribution cut at twice its deviation has 0.8796 of it left.
        assert layer.weight.std().item() == pytest.approx(0.8796 * PAPER_STD, rel=0.03)
        assert layer.weight.abs().max() <= 2 * PAPER_STD


@pytest.mark.slow
def test_votes_start_as_long_as_their_capsules_and_primary_capsules_long():
    model = create("residual", image_shape=(3, 64, 64), classes=100)
    parse = model.parse(torch.rand(4, 3, 64, 64))
    assert 0.6 < parse.activations[0].mean() < 0.95
    layer = model.routed[-1]
    votes = torch.einsum("bid,ijde->bije", parse.poses[-2], layer.weight)
    ratio = votes.norm(dim=-1) / parse.activations[-2].unsqueeze(-1)
    assert ratio.mean().item() == pytest.approx(0.88, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "types"), [("residual", 16), ("deep", 32)])
@pytest.mark.parametrize("side", [28, 32, 64, 96, 224])
def test_the_number_of_primary_capsules_does_not_grow_with_the_image(side, preset, types):
    model = create(preset, filters=2, image_shape=(3, side, side), decoder=())
    assert model.routed[0].weight.shape[0] <= 6 * 6 * types
    assert model(torch.rand(1, 3, side, side)).shape == (1, 10)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["residual", "deep"])
def test_an_image_s_answer_does_not_depend_on_its_neighbours(preset):
    model = create(preset, filters=4, image_shape=(3, 40, 40)).double()
    images = torch.rand(3, 3, 40, 40, dtype=torch.float64)
    torch.testing.assert_close(model(images)[1:2], model(images[1:2]), rtol=0, atol=1e-10)
    torch.testing.assert_close(model.train()(images), model.eval()(images), rtol=0, atol=0)


def test_the_residual_encoder_is_its_formulas():
    model = create("residual", filters=4, image_shape=(1, 12, 12), decoder=()).double()
    stem, block, norm, _ = model.encoder
    x = torch.rand(2, 1, 12, 12, dtype=torch.float64)
    f = torch.nn.functional
    before = f.conv2d(x, stem.weight, stem.bias, padding=1)
    rows = before.reshape(2, 1, -1)  # 4 channels are one group
    normal = ((rows - rows.mean(-1, keepdim=True)) / (rows.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()).relu()
    normal = normal.view_as(before)
    short = f.conv2d(normal, block.shortcut.weight, block.shortcut.bias, stride=2)
    first, middle, _, last = block.layers
    long = f.conv2d(normal, first.weight, first.bias, stride=2, padding=1)
    long = f.conv2d(middle(long).relu(), last.weight, last.bias, padding=1)
    torch.testing.assert_close(model.encoder(x), norm(short + long).relu())
    assert model.encoder.grid == (6, 6)
    assert isinstance(model.primary.convolution, Convolution)
