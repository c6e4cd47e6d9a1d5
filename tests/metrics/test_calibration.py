"""Sureness against being right, by hand and against torchmetrics."""

import pytest
import torch
from torchmetrics.functional.classification import multiclass_calibration_error

from gammacaps.errors import InputError
from gammacaps.metrics import answered, calibration_error, reliability


def test_a_case_by_hand():
    sure, right = torch.tensor([0.9, 0.7, 0.2, 0.4]), torch.tensor([True, False, False, True])
    bins = reliability(sure, right, bins=2)
    assert [each.images for each in bins] == [2, 2]
    assert [each.sure for each in bins] == pytest.approx([0.3, 0.8])
    assert [each.right for each in bins] == pytest.approx([0.5, 0.5])
    assert calibration_error(bins) == pytest.approx((2 * 0.2 + 2 * 0.3) / 4)
    # The surest half is 0.9, which is right, and 0.7, which is not.
    assert [answered(sure, right, share) for share in (0.25, 0.5, 1.0)] == [1.0, 0.5, 0.5]


def test_one_that_is_always_right_when_sure_and_never_else_has_no_error():
    sure = torch.tensor([1.0, 1.0, 0.0])
    bins = reliability(sure, torch.tensor([True, True, False]))
    assert calibration_error(bins) == 0.0
    assert bins[3].sure is None


@pytest.mark.parametrize("classes", [2, 10])
def test_as_torchmetrics_has_it(classes):
    generator = torch.Generator().manual_seed(0)
    scores = (3 * torch.randn(300, classes, generator=generator)).softmax(1)
    labels = torch.randint(0, classes, (300,), generator=generator)
    sure, right = scores.max(1).values, scores.argmax(1) == labels
    theirs = multiclass_calibration_error(scores, labels, classes, n_bins=15).item()
    assert calibration_error(reliability(sure, right)) == pytest.approx(theirs, abs=1e-5)


def test_bad_sureness_is_one_sentence():
    right = torch.tensor([True])
    with pytest.raises(InputError, match="from 0 to 1"):
        reliability(torch.tensor([1.5]), right)
    with pytest.raises(InputError, match="for each answer"):
        reliability(torch.rand(0), right[:0])
    with pytest.raises(InputError, match="above 0 and at most 1"):
        answered(torch.rand(1), right, 0.0)
