"""Known against unseen things, by hand and against torchmetrics."""

import pytest
import torch
from torchmetrics.functional.classification import binary_auroc, binary_roc

from gammacaps.errors import InputError
from gammacaps.metrics import auroc, false_alarms


def test_a_case_by_hand():
    known, unseen = torch.tensor([0.9, 0.8, 0.4]), torch.tensor([0.7, 0.4])
    # Of six pairs the known one is higher in four, equal in one.
    assert auroc(known, unseen) == pytest.approx(4.5 / 6)
    # All three known ones must pass, so the threshold is 0.4, which both unseen ones reach.
    assert false_alarms(known, unseen) == 1.0
    # For two of three it is 0.8.
    assert false_alarms(known, unseen, kept=0.6) == 0.0


def test_ends():
    low, high = torch.tensor([0.1, 0.2]), torch.tensor([0.8, 0.9])
    assert auroc(high, low) == 1.0
    assert auroc(low, high) == 0.0
    assert auroc(low, low) == 0.5
    assert false_alarms(high, low) == 0.0
    assert false_alarms(low, high) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_as_torchmetrics_has_it_with_ties(seed):
    generator = torch.Generator().manual_seed(seed)
    known = (torch.rand(200, generator=generator) * 0.7 + 0.3).mul(20).round() / 20
    unseen = torch.rand(151, generator=generator).mul(20).round() / 20
    scores = torch.cat((known, unseen))
    targets = torch.cat((torch.ones(200), torch.zeros(151))).long()
    assert auroc(known, unseen) == pytest.approx(binary_auroc(scores, targets).item(), abs=1e-6)
    false, true, _ = binary_roc(scores, targets)
    assert false_alarms(known, unseen) == pytest.approx(false[true >= 0.95].min().item(), abs=1e-6)


def test_nothing_to_tell_apart_is_one_sentence():
    with pytest.raises(InputError, match="some of both"):
        auroc(torch.rand(3), torch.rand(0))
    with pytest.raises(InputError, match="not a number"):
        false_alarms(torch.rand(3), torch.tensor([torch.nan]))
