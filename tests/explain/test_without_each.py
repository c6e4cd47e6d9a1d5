"""Each capsule switched off by itself: against the network with that capsule off."""

import pytest
import torch
from former_small import CONVOLUTION

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain import without
from gammacaps.explain.without_each import IMAGES, accuracies_without_each, can_switch_off, sufferers
from gammacaps.models import CapsuleModel


@pytest.mark.parametrize("routing", ["sda", "em"])
def test_accuracies_are_those_of_the_network_with_that_capsule_off(routing):
    torch.manual_seed(3)
    if routing == "em":
        model = gammacaps.create("matrix", image_shape=(1, 14, 14), classes=3, filters=8, types=(3, 3)).eval()
        images = torch.rand(IMAGES + 5, 1, 14, 14)
    else:
        model = gammacaps.create("small", filters=8, primary_types=2, hidden=(6,), decoder=(), classes=3)
        images = torch.rand(IMAGES + 5, 1, 28, 28)
    labels = torch.arange(len(images)) % 3
    before, each = accuracies_without_each(model, 1, [4, 0], images, labels)
    assert each.shape == (2, 3)
    with torch.no_grad():
        for capsule, found in ((None, before), (4, each[0]), (0, each[1])):
            network = model if capsule is None else without(model, [(1, capsule)])
            right = network(images).argmax(1) == labels
            assert found.tolist() == pytest.approx([right[labels == k].double().mean().item() for k in range(3)])


def test_a_capsule_that_alone_leads_to_a_class_is_missed_by_that_class():
    """Two hidden capsules, each the only one that votes for its class."""
    shape = {**CONVOLUTION, "image_shape": (1, 4, 4), "filters": 2, "kernel": 4, "stride": 1}
    shape |= {"primary_kernel": 1, "primary_stride": 1}
    capsules = {"primary_types": 1, "primary_size": 2, "hidden": (2,), "hidden_size": 2, "class_size": 2}
    model = gammacaps.create("small", **shape, **capsules, classes=2, routing="rba", iterations=1, decoder=())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.encoder[0].weight[0, 0, :2] = 1 / 8  # the upper half
        model.encoder[0].weight[1, 0, 2:] = 1 / 8  # the lower half
        model.primary.convolution.weight[0, 0], model.primary.convolution.weight[1, 1] = 3, 3
        for j in range(2):
            model.routed[0].weight[0, j, j, 0] = 4  # hidden j looks at entry j
            model.routed[1].weight[j, j, 0, 0] = 4  # and votes for class j
    images = torch.zeros(8, 1, 4, 4)
    images[:4, :, :2], images[4:, :, 2:] = 0.9, 0.9
    images += 0.05
    labels = torch.tensor([0] * 4 + [1] * 4)
    before, each = accuracies_without_each(model, "hidden 1", range(2), images, labels)
    assert before.tolist() == [1, 1]
    for capsule in range(2):
        (lost,) = sufferers(before, each[capsule])
        assert (lost.label, lost.before, lost.without, lost.lost) == (capsule, 1, 0, 1)


def test_classes_that_do_not_suffer_are_left_out_and_the_worst_comes_first():
    before, without_it = torch.tensor([0.5, 0.9, 0.8, torch.nan, 0.7]), torch.tensor([0.6, 0.2, 0.7, torch.nan, 0.7])
    assert [one.label for one in sufferers(before, without_it)] == [1, 2]
    assert [one.label for one in sufferers(before, without_it, most=1)] == [1]


def test_what_can_t_be_switched_off_is_told():
    model = gammacaps.create("small", filters=8, primary_types=2, hidden=(6,), decoder=())
    images, labels = torch.rand(2, 1, 28, 28), torch.tensor([0, 1])
    with pytest.raises(InputError, match="There is no capsule 6 in layer 'hidden 1': its capsules are 0 to 5"):
        accuracies_without_each(model, 1, [6], images, labels)
    with pytest.raises(InputError, match="Class capsules can't be switched off"):
        accuracies_without_each(model, "class", [0], images, labels)
    assert can_switch_off(model)
    assert not can_switch_off(CapsuleModel())
    assert not can_switch_off(gammacaps.create("cnn", filters=(2, 2), width=4))
