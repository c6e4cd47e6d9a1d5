"""Where training's attack starts: anywhere in the ball, or at corners that are alike over stripes and blocks."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import gammacaps
from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.starts import draw_noise
from gammacaps.training.step import attack
from gammacaps.training.train import resume, train

BLOCKS = TrainConfig(attack_start="blocks", eps=0.3, eps_ramp=0.0, seed=5)
SHAPES = [(1, 28, 28), (3, 32, 32), (1, 1, 1), (2, 5, 9)]  # MNIST's, colour, the least, neither square nor even


def runs_of(line: torch.Tensor) -> list[int]:
    """The lengths of stretches of one value."""
    return torch.unique_consecutive(line, return_counts=True)[1].tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_half_of_the_images_start_at_corners_of_the_ball_and_the_others_as_without(shape):
    images = torch.rand(500, *shape)
    noise = draw_noise(BLOCKS, images, 7, 500)
    plain = draw_noise(replace(BLOCKS, attack_start="uniform"), images, 7, 500)
    at_corners = ((noise == 0) | (noise == 1)).flatten(1).all(dim=1)
    # The share of 500 draws is within four deviations of one half.
    assert abs(at_corners.float().mean().item() - 0.5) < 4 * 0.5 / 500**0.5
    assert torch.equal(noise[~at_corners], plain[~at_corners])
    corners = (2 * noise[at_corners] - 1) * BLOCKS.eps
    assert torch.allclose(corners.abs(), torch.tensor(BLOCKS.eps))
    assert 0.4 < (corners > 0).float().mean() < 0.6


def test_corners_are_stripes_from_top_to_bottom_and_squares_each_of_one_size():
    side = 28
    noise = draw_noise(BLOCKS, torch.rand(1, 1, side, side), 3, 4000)[:, 0]
    noise = noise[((noise == 0) | (noise == 1)).flatten(1).all(dim=1)]
    upright = (noise == noise[:, :1]).flatten(1).all(dim=1)
    # Few of the blocks have no edge across by chance: those of at most two rows of blocks.
    assert 0.42 < upright.float().mean() < 0.6
    for kind in (noise[upright], noise[~upright]):
        widest = [max(runs_of(line)) for line in kind[:, 0]]
        assert min(widest) < 8 < 14 < max(widest)
    fine = next(image for image in noise[~upright] if max(runs_of(image[0])) == 3)
    down, across = (
        {i for i in range(1, side) if not torch.equal(way[i], way[i - 1])} for way in (fine, fine.T)
    )  # where squares end
    for edges in (down, across):
        size = min(b - a for a, b in zip(sorted(edges), sorted(edges)[1:], strict=False))
        assert len({edge % size for edge in edges}) == 1


def test_starts_follow_from_the_seed_and_the_step_and_each_channel_has_its_own():
    images = torch.rand(64, 3, 12, 12)
    noise = draw_noise(BLOCKS, images, 1, 64)
    assert torch.equal(noise, draw_noise(BLOCKS, images[:9], 1, 64))  # whoever has which images
    assert not torch.equal(noise, draw_noise(BLOCKS, images, 2, 64))
    assert not torch.equal(noise, draw_noise(replace(BLOCKS, seed=6), images, 1, 64))
    corners = noise[((noise == 0) | (noise == 1)).flatten(1).all(dim=1)]
    assert (corners[:, 0] != corners[:, 1]).flatten(1).any(dim=1).float().mean() > 0.9


def test_the_usual_start_is_drawn_as_ever():
    """As one draw for each pixel, from the seed and the step alone."""
    images, config = torch.rand(4, 1, 6, 6), TrainConfig(seed=2)
    drawn = torch.rand(10, 1, 6, 6, generator=torch.Generator().manual_seed(2 * 1_000_003 + 9))
    assert torch.equal(draw_noise(config, images, 9, 10), drawn)
    assert draw_noise(replace(config, robust=False), images, 9, 10).shape == (10, 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_attack_starts_there_inside_the_ball_and_among_images(shape):
    still = replace(BLOCKS, attack_step=0.0)  # so that it ends where it starts
    model = gammacaps.create("cnn", image_shape=shape, classes=2, filters=(2, 2), width=4)
    images, labels = torch.rand(40, *shape), torch.arange(40) % 2
    noise = draw_noise(still, images, 0, 40)
    moved = attack(still, model, images, labels, 0, 1.0, None, noise)
    assert (moved - images).abs().max() <= BLOCKS.eps + 1e-6
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert torch.allclose(moved, (images + (2 * noise - 1) * BLOCKS.eps).clamp(0, 1), atol=1e-6)


@pytest.mark.slow
def test_a_training_from_blocks_resumes_to_the_very_weights(tmp_path):
    small = {"model": ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]"), "attack_steps": 1, "device": "cpu"}
    config = replace(BLOCKS, **small, steps=5, batch=8, ema=0.9, norm="linf")
    train(config, tmp_path / "whole")
    train(config, tmp_path / "broken", until=2)
    resume(tmp_path / "broken")
    train(replace(config, attack_start="uniform"), tmp_path / "other")
    broken, whole, other = (load_file(tmp_path / name / "model.safetensors") for name in ("broken", "whole", "other"))
    assert all(torch.equal(broken[name], whole[name]) for name in whole)
    assert not all(torch.equal(other[name], whole[name]) for name in whole)


def test_other_norms_and_other_words_get_one_sentence(tmp_path, capsys):
    with pytest.raises(InputError, match=r"^attack_start blocks is for the norm linf, not l2: leave it out\.$"):
        TrainConfig(attack_start="blocks", norm="l2", eps=1.5)
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--attack-start", "stripes", "--out", str(tmp_path / "run")])
    assert "uniform" in capsys.readouterr().err
