"""The worst of a grid of turns, shifts and scalings, on networks for which it is known."""

import pytest
import torch

import gammacaps
from gammacaps.attacks import Grid, spatial
from gammacaps.errors import InputError
from gammacaps.ops.placing import placed


class Halves(torch.nn.Module):
    """Class 0 where the left half is brighter, class 1 where the right half is."""

    def forward(self, images):
        width = images.shape[3] // 2
        left, right = images[..., :width].flatten(1).sum(1), images[..., width:].flatten(1).sum(1)
        return torch.stack((left, right), dim=1)


def squares(channels=1, side=12):
    """A square of 4 x 4 near the middle, left of it by 1, 2 and 3 pixels: it is class 0."""
    images = torch.zeros(3, channels, side, side)
    for place, left in enumerate((1, 2, 3)):
        images[place, :, 4:8, 4 - left : 8 - left] = 1
    return images, torch.zeros(3, dtype=torch.int64)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_square_falls_exactly_where_a_shift_of_the_grid_takes_it_over_the_middle(channels):
    images, labels = squares(channels)
    for shift, falls in ((0.0, [False] * 3), (1.5, [True, False, False]), (2.5, [True, True, False])):
        grid = Grid(turn=0, zoom=0, shift=shift, turns=1, zooms=1, shifts=3)
        moved = spatial(Halves(), images, labels, grid=grid)
        assert (Halves()(moved).argmax(1) != labels).tolist() == falls


def test_every_image_is_tried_at_all_of_the_grid():
    images = torch.rand(6, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    labels = Halves()(images).argmax(1)
    grid = Grid(turn=40, shift=1, zoom=0.2, turns=3, shifts=3, zooms=3)
    assert len(grid.placements()) == 81
    margins = []
    for place in grid.placements():
        scores = Halves()(placed(images, **place))
        margins.append((scores[:, 1] - scores[:, 0]) * (1 - 2 * labels))
    true = torch.stack(margins).amax(0)
    for until_broken in (False, True):
        scores = Halves()(spatial(Halves(), images, labels, grid=grid, until_broken=until_broken))
        found = (scores[:, 1] - scores[:, 0]) * (1 - 2 * labels)
        assert torch.equal(found > 0, true > 0)
        if not until_broken:
            torch.testing.assert_close(found, true)


def test_the_grid_holds_no_change_at_all_and_both_ends():
    places = Grid().placements()
    assert len(places) == 13 * 5 * 5 * 3
    assert places[-1] == {"turn": 0.0, "right": 0.0, "down": 0.0, "scale": 1.0}
    assert {abs(one["turn"]) for one in places[:8]} == {30.0}
    assert {round(one["scale"], 9) for one in places} == {0.9, 1.0, 1.1}


def test_a_network_and_no_images():
    model, (images, labels) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    grid = Grid(turns=3, shifts=1, zooms=1)
    moved = spatial(model, images[:8], labels[:8], grid=grid)
    assert moved.shape == images[:8].shape
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert spatial(model, images[:0], labels[:0]).shape == images[:0].shape


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"turn": 200}, "turn must be"),
        ({"shift": -1}, "shift must be"),
        ({"zoom": 1.0}, "zoom must be from 0 to less than 1"),
        ({"turns": 4}, "turns must be odd"),
        ({"shifts": 0}, "shifts must be"),
    ],
)
def test_a_wrong_grid_is_one_sentence(options, words):
    with pytest.raises(InputError, match=words):
        Grid(**options)


def test_wrong_edges_are_one_sentence():
    images, labels = squares()
    with pytest.raises(InputError, match="There is no way to fill in the edges 'white'"):
        spatial(Halves(), images, labels, edges="white")
