"""PNG files, read back: the pixels must be those that were given."""

import io

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from gammacaps.errors import InputError
from gammacaps.explain.pictures import Row, figure_png, grid_png, heat_figure, image_png, plain


def read(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def test_a_small_image_is_enlarged_by_whole_pixels():
    image = torch.rand(1, 5, 7)
    png = image_png(image, side=20)  # 20/7 is nearly 3
    pixels = read(png)
    assert Image.open(io.BytesIO(png)).mode == "L"
    assert pixels.shape == (15, 21, 3)
    for row in range(15):
        for column in range(21):
            assert pixels[row, column, 0] == round(image[0, row // 3, column // 3].item() * 255)


def test_a_large_image_keeps_its_size():
    assert read(image_png(torch.rand(1, 100, 90), side=20)).shape == (100, 90, 3)


def test_three_channels_are_colours_and_two_stand_side_by_side():
    colour = torch.zeros(3, 4, 4)
    colour[0, 0, 0] = colour[2, 3, 3] = 1
    pixels = read(image_png(colour, side=4))
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[3, 3].tolist() == [0, 0, 255]
    views = torch.stack((torch.zeros(4, 4), torch.ones(4, 4)))
    assert read(image_png(views, side=4))[:, :, 0].tolist() == [[0] * 4 + [255] * 4] * 4


def test_a_grid_holds_every_image_in_its_place():
    images = [torch.full((1, 3, 3), shade) for shade in (0.0, 0.2, 0.4, 0.6, 0.8)]
    pixels = read(grid_png([Row(images[:3]), Row(images[3:])], side=6, gap=4))[:, :, 0]
    assert pixels.shape == (4 + 2 * (6 + 4), 4 + 3 * (6 + 4))
    for place, image in enumerate(images):
        top, left = 4 + 10 * (place // 3), 4 + 10 * (place % 3)
        assert (pixels[top : top + 6, left : left + 6] == round(image[0, 0, 0].item() * 255)).all()
    assert (pixels[15:20, 25:] == 255).all()  # there is no sixth


def test_captions_and_names_have_room_of_their_own():
    white = [torch.ones(1, 28, 28)] * 2
    bare = read(grid_png([Row(white)]))
    captioned = read(grid_png([Row(white, ["boot", "a very long caption indeed"], "hidden 1: 3")]))
    assert captioned.shape[0] > bare.shape[0]
    assert captioned.shape[1] > bare.shape[1]
    below = captioned[bare.shape[0] :, :, 0]
    # One caption ends before the other begins, however long it was.
    middle = captioned.shape[1] - 6 - 84 - 4
    assert (below[:, middle : middle + 2] == 255).all()
    assert (below[:, middle + 4 :] < 128).any()
    assert (captioned[:84, :80, 0] < 128).any()  # the name


def test_a_figure_keeps_its_colours_in_few_bytes():
    figure = Figure(figsize=(4, 2))
    figure.patch.set_facecolor("#0072b2")
    png = figure_png(figure, dpi=50)
    pixels = read(png)
    assert pixels.shape == (100, 200, 3)
    assert (pixels == [0x00, 0x72, 0xB2]).all()
    assert len(png) < 1000
    assert png == figure_png(figure, dpi=50)


def test_shades_follow_the_values_and_cells_hold_words():
    figure = heat_figure(torch.tensor([[0.0, 1.0], [0.5, 0.2]]), ["a", "b"], ["c", "d"], title="t", cells=[["x", ""]])
    axes = figure.axes[0]
    shades = axes.images[0].get_array()
    assert np.allclose(shades, [[0, 1], [0.5, 0.2]])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["c", "d"]
    assert [text.get_text() for text in axes.texts] == ["x", ""]


def test_of_many_names_only_some_are_shown():
    figure = heat_figure(torch.rand(2, 1152), ["a", "b"], [str(k) for k in range(1152)], title="t")
    shown = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert 20 <= len(shown) <= 40
    assert shown[1] == str(int(shown[1])) == shown[1]


def test_plain_numbers():
    assert plain(torch.tensor([[0.1, 1 / 3]])) == [[0.1, 0.3333]]
    assert plain(torch.tensor([3, 4])) == [3, 4]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: grid_png([Row([torch.zeros(1, 3, 3).byte()])]), r"float image \(C, H, W\), not torch.uint8"),
        (lambda: grid_png([Row([torch.zeros(28, 28)])]), r"float image \(C, H, W\), not torch.float32 \(28, 28\)"),
        (lambda: grid_png([Row([torch.zeros(1, 4, 4), torch.zeros(1, 9, 9)])]), "all of one shape"),
        (lambda: grid_png([]), "A grid needs images"),
    ],
)
def test_what_can_t_be_drawn_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()
