"""Capsules switched off: against the layers put together by hand."""

import pytest
import torch

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain import parse_tree, without
from gammacaps.nn.matrix import MatrixLayer


def network(**changes):
    return gammacaps.create("small", **{"filters": 8, "primary_types": 2, "hidden": (6,), "decoder": (), **changes})


@pytest.mark.parametrize("routing", ["sda", "rba"])
def test_a_capsule_that_is_off_has_a_zero_pose_before_the_next_layer_s_routing(routing):
    model, images = network(routing=routing), torch.rand(3, 1, 28, 28)
    with torch.no_grad():
        parse = without(model, [(0, 7), (1, 2), (1, 4)]).parse(images)
        primary = model.primary(model.encoder(images))
        primary[:, 7] = 0
        hidden = model.routed[0](primary, True)
        silenced = hidden.poses.clone()
        silenced[:, [2, 4]] = 0
        top = model.routed[1](silenced, True)
    assert torch.equal(parse.poses[1], silenced)
    assert torch.allclose(parse.couplings[0], hidden.couplings)
    assert torch.allclose(parse.poses[2], top.poses)
    assert torch.allclose(parse.couplings[1], top.couplings)
    assert not torch.allclose(parse.scores, model(images))
    assert parse.activations[1][:, [2, 4]].abs().max() == 0


def test_a_matrix_capsule_that_is_off_has_no_activation_either():
    model = gammacaps.create("matrix", image_shape=(1, 14, 14), classes=3, filters=8, types=(3, 3)).eval()
    images = torch.rand(2, 1, 14, 14)
    with torch.no_grad():
        parse = without(model, [(1, 5)]).parse(images)
        first = model.routed[0](model.primary(model.encoder(images)))
        poses, activations = first.poses.clone(), first.activations.clone()
        poses[:, 5], activations[:, 5] = 0, 0
        second = model.routed[1](MatrixLayer(poses, activations))
    assert parse.activations[1][:, 5].abs().max() == 0
    assert torch.allclose(parse.activations[2], second.activations)


def test_the_network_itself_is_left_alone_and_weights_are_shared():
    model, image = network(), torch.rand(1, 28, 28)
    before = parse_tree(model, image).scores
    off = without(model, [(1, 0)])
    assert parse_tree(model, image).scores == before
    assert all(a is b for a, b in zip(model.parameters(), off.parameters(), strict=True))
    assert parse_tree(off, image).layers[1].activations[0] == 0
    assert parse_tree(without(model, []), image).scores == before


@pytest.mark.parametrize(
    ("capsules", "words"),
    [
        ([(1, 6)], "There is no capsule 6 in layer 'hidden 1': its capsules are 0 to 5"),
        ([(1, -1)], "There is no capsule -1"),
        ([(2, 0)], "Class capsules can't be switched off"),
        ([(9, 0)], "There is no layer '9'"),
    ],
)
def test_what_can_t_be_switched_off_is_told(capsules, words):
    with pytest.raises(InputError, match=words):
        without(network(), capsules)


def test_a_network_without_capsules_is_refused():
    with pytest.raises(InputError, match="has no capsules"):
        without(gammacaps.create("cnn", filters=(2, 2), width=4), [(0, 0)])
