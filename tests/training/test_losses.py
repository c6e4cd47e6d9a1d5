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


def test_smoothed_labels_are_the_loss_over_all_classes_by_their_shares():
    scores, labels = torch.rand(5, 4, dtype=torch.float64), torch.tensor([0, 3, 1, 1, 2])
    for name in ("cross-entropy", "ce-log"):
        expected = 0.0
        for image, label in zip(scores.tolist(), labels.tolist(), strict=True):
            weights = [math.exp(s) for s in image] if name == "cross-entropy" else image
            for n, weight in enumerate(weights):
                share = 0.2 / 4 + (0.8 if n == label else 0)
                expected -= share * math.log(weight / sum(weights)) / len(scores)
        assert classification_loss(name, scores, labels, 0, 0.2).item() == pytest.approx(expected)


def test_smoothing_moves_the_lengths_that_the_margin_loss_asks_for_toward_their_mean():
    mean, labels = (0.9 + 3 * 0.1) / 4, torch.tensor([2])
    true, other = (length + 0.25 * (mean - length) for length in (0.9, 0.1))
    asked = torch.tensor([[other, other, true, other]], dtype=torch.float64)
    assert margin_loss(asked, labels, 0.25).item() == pytest.approx(0, abs=1e-15)
    off = torch.tensor([[0.05, -0.02, -0.1, 0.0]])  # one other is too long, the true one too short
    assert margin_loss(asked + off, labels, 0.25).item() == pytest.approx(0.5 * 0.05**2 + 0.1**2)
    assert classification_loss("margin", asked + off, labels, 0, 0.25) == margin_loss(asked + off, labels, 0.25)
    assert classification_loss("spread", asked, labels, 0.9, 0.1) == spread_loss(asked, labels, 0.9 * 0.9) > 0


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
