import math

import pytest
import torch
from independent import scores as loops

from gammacaps.errors import InputError
from gammacaps.training.losses import (
    classification_loss,
    divergence,
    margin_loss,
    reconstruction_loss,
    spread_loss,
    spread_margin,
)


def test_margin_and_spread_losses_are_the_loops():
    scores, labels = torch.rand(7, 5, dtype=torch.float64), torch.randint(5, (7,))
    assert margin_loss(scores, labels).item() == pytest.approx(loops.margin_loss(scores.numpy(), labels.numpy()))
    for margin in (0.2, 0.9):
        expected = loops.spread_loss(scores.numpy(), labels.numpy(), margin)
        assert spread_loss(scores, labels, margin).item() == pytest.approx(expected)


def test_losses_are_zero_at_their_goal():
    labels = torch.tensor([1, 0])
    assert margin_loss(torch.tensor([[0.1, 0.9], [0.95, 0.05]]), labels) == 0
    assert spread_loss(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), labels, 0.9) == pytest.approx(0, abs=1e-7)


def test_the_spread_s_margin_grows_from_0_2_to_0_99():
    assert spread_margin(0) == pytest.approx(0.2 + 0.79 / (1 + 2.718281828**4))
    assert spread_margin(200_000) == pytest.approx(0.2 + 0.79 / 2)
    assert spread_margin(10**9) == pytest.approx(0.99, abs=1e-4)
    assert all(spread_margin(s) < spread_margin(s + 10_000) for s in range(0, 600_000, 50_000))


def test_reconstruction_is_summed_over_pixels():
    images = torch.zeros(2, 1, 3, 3)
    assert reconstruction_loss(images + 0.5, images).item() == pytest.approx(9 * 0.25)


def test_ce_log_is_the_surprise_at_the_true_share_of_the_lengths():
    lengths, labels = torch.tensor([[0.6, 0.2, 0.2], [0.1, 0.1, 0.8]], dtype=torch.float64), torch.tensor([0, 1])
    expected = -(math.log(0.6) + math.log(0.1)) / 2
    assert classification_loss("ce-log", lengths, labels, 0).item() == pytest.approx(expected)
    halved = classification_loss("ce-log", lengths / 2, labels, 0)
    assert halved.item() == pytest.approx(expected)
    lost = torch.zeros(1, 3, requires_grad=True)  # no capsule is there: finite all the same
    classification_loss("ce-log", lost, torch.tensor([1]), 0).backward()
    assert torch.isfinite(lost.grad).all()


def test_an_unknown_loss_is_refused():
    with pytest.raises(InputError, match="There is no loss 'ce': use one of margin, spread, ce-log, cross-entropy"):
        classification_loss("ce", torch.rand(2, 3), torch.tensor([0, 1]), 0)


@pytest.mark.parametrize("name", ["margin", "spread", "cross-entropy", "ce-log"])
def test_divergence_is_zero_for_equal_scores_and_positive_otherwise(name):
    clean, attacked = torch.rand(4, 6), torch.rand(4, 6)
    assert divergence(name, clean, clean).tolist() == pytest.approx([0] * 4, abs=1e-6)
    assert (divergence(name, clean, attacked) > 0).all()
    assert torch.isfinite(divergence(name, torch.zeros(2, 3), torch.zeros(2, 3))).all()
    assert torch.isfinite(classification_loss(name, clean, torch.tensor([0, 1, 2, 3]), 0))
